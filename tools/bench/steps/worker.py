"""What the worker processes of tools/bench/models share: serve() takes training steps when the controller says so.

A worker builds its model, prints READY, and then reads lines from standard input, each the JSON of a request: the
number of `steps`. It answers each with RESULT and JSON: for each step its ms, cpu_ms (of all threads) and rows (of the
first input), and peak_mb, the process's peak memory so far. Before the measured steps of a request it takes a step that
does not count, because another process has used the caches in the meantime. Runs under Python 3.7 and later.
"""

import json
import sys
import time


def peak_mb():
    """The peak resident memory of this process, MB."""
    with open("/proc/self/status") as status:
        (line,) = [line for line in status if line.startswith("VmHWM:")]
    return int(line.split()[1]) / 1024.0


def say(word, **figures):
    print(f"{word} {json.dumps(figures)}", flush=True)


def serve(prepare, step, imported_mb):
    """Serves requests until standard input ends.

    prepare() returns what the next step needs and the rows of its batch, outside the measured time; step(needed) trains
    and returns the loss once the parameters are updated; imported_mb is peak_mb() before the model was built.
    """
    began = time.perf_counter()
    loss = step(prepare()[0])
    first_ms = 1e3 * (time.perf_counter() - began)
    for _ in range(2):
        step(prepare()[0])
    say("READY", first_ms=first_ms, loss=float(loss), imported_mb=imported_mb)
    for line in sys.stdin:
        ms, cpu_ms, rows = [], [], []
        step(prepare()[0])
        for _ in range(json.loads(line)["steps"]):
            prepared, count = prepare()
            before, began = time.process_time(), time.perf_counter()
            step(prepared)
            ms.append(1e3 * (time.perf_counter() - began))
            cpu_ms.append(1e3 * (time.process_time() - before))
            rows.append(count)
        say("RESULT", ms=ms, cpu_ms=cpu_ms, rows=rows, peak_mb=peak_mb())
