"""The processes of tools/bench/models: workers that train on request, and a process that keeps a core busy.

with Worker('Penstock', command, environment, limit_s) as worker:
    worker.ready                        # its READY figures, awaited; None if it failed: worker.last_words()
    worker.take(5)                      # the RESULT figures of 5 steps
"""

import contextlib
import functools
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time


class Worker:
    """A process that serves the protocol of worker.py. It is killed when it has not answered for limit_s."""

    def __init__(self, name, command, environment, limit_s):
        self.name, self.limit_s = name, limit_s
        self.log = tempfile.TemporaryFile("w+")
        kept = {key: value for key, value in os.environ.items() if not key.lower().endswith("_proxy")}
        self.process = subprocess.Popen(
            command,
            env=dict(kept, **environment),
            text=True,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.log,
        )

    @functools.cached_property
    def ready(self):
        return self.answer("READY")

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        self.process.kill()
        self.process.communicate()
        self.log.close()

    def answer(self, word):
        """The figures of the next line that begins with `word`; None if the process ended before."""
        patience = threading.Timer(self.limit_s, self.process.kill)
        patience.start()
        try:
            for line in self.process.stdout:
                if line.startswith(word + " "):
                    return json.loads(line[len(word) :])
        finally:
            patience.cancel()
        self.process.wait()
        return None

    def take(self, steps):
        self.ask(steps)
        return self.result()

    def ask(self, steps):
        with contextlib.suppress(BrokenPipeError):  # the process has ended: answer() will return None
            self.process.stdin.write(json.dumps({"steps": steps}) + "\n")
            self.process.stdin.flush()

    def result(self):
        figures = self.answer("RESULT")
        if figures is None:
            raise RuntimeError(f"{self.name} failed, or took more than {self.limit_s} s:\n{self.last_words()}")
        self.settle()
        return figures

    def settle(self):
        """Waits until the threads of the process sleep: some libraries let them spin for a while after a step, at the
        expense of the process that is measured next."""
        before = -1.0
        for _ in range(200):
            after = time.clock_gettime((~self.process.pid << 3) | 2)
            if after - before < 1e-3:
                return
            before = after
            time.sleep(0.01)

    def last_words(self):
        self.log.seek(0)
        return self.log.read().strip()[-2000:]


class Ranks:
    """The workers of a job with a collective, which take their steps together. A step's time is rank 0's, its CPU time
    that of all ranks."""

    def __init__(self, name, workers):
        self.name, self.workers = name, workers

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        for worker in self.workers:
            worker.__exit__()

    @functools.cached_property
    def ready(self):
        figures = [worker.ready for worker in self.workers]
        return figures[0] if all(figures) else None

    def take(self, steps):
        for worker in self.workers:
            worker.ask(steps)
        results = [worker.result() for worker in self.workers]
        cpu_ms = [sum(ranks) for ranks in zip(*(result["cpu_ms"] for result in results))]
        return {**results[0], "cpu_ms": cpu_ms, "peak_mb": max(result["peak_mb"] for result in results)}

    def settle(self):
        for worker in self.workers:
            worker.settle()

    def last_words(self):
        return "\n".join(worker.last_words() for worker in self.workers)


class BusyCore:
    """A process that keeps the last core of this process's cores busy between go() and stop()."""

    def __init__(self):
        core = max(os.sched_getaffinity(0))
        self.process = subprocess.Popen(
            [sys.executable, "-c", f"import os\nos.sched_setaffinity(0, [{core}])\nwhile True:\n    pass"]
        )
        self.stop()

    def go(self):
        self.process.send_signal(signal.SIGCONT)

    def stop(self):
        self.process.send_signal(signal.SIGSTOP)

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        self.process.kill()
        self.process.wait()
