"""Processes that run cases of the corpus of key-value stores, one after the other, over pservers.

    with Processes(workers=4, servers=2, folder=tmp_path) as processes:
        got = processes.run(path_of_case, workers=2, servers=1)      # [{call: array} of each rank]

The script of each process reads a case's path and addresses from its standard input. Imports no test.
"""

import json
import os
import pathlib
import select
import subprocess
import sys
import time

import numpy as np
from penstock._src.launch.job import free_ports

WAIT_S = 60
HERE = pathlib.Path(__file__).parent

SCRIPT = """
import json, pathlib, sys
sys.path.insert(0, {here!r})
import numpy as np
from kv_cases import Case, run_calls
from kv_training import train
from penstock import _penstock
from penstock._src.kv.kinds import kind_of
from penstock._src.kv.served import ServedStore
from penstock._src.kv.store import KVStore

role, number = sys.argv[1], int(sys.argv[2])
for line in sys.stdin:
    task = json.loads(line)
    case = Case(pathlib.Path(task["case"]))
    why = ""
    try:
        if role == "server":
            _penstock.serve_keys(task["servers"][number], case.workers, job=task["job"])
        else:
            stores = []

            def make(name):
                kind = kind_of(name)
                client = _penstock.KvClient(
                    task["servers"], number, case.workers, sync=not kind.is_async, bound=case.bound, job=task["job"]
                )
                stores.append(KVStore(kind, ServedStore(client, in_fours=not kind.on_device)))
                return stores[-1]

            try:
                got = train(case, number, make) if case.is_training else run_calls(case, number, make, task["folder"])
                np.savez(f"{{task['folder']}}/r{{number}}.npz", **got)
            except BaseException as error:
                stores[-1]._backend.abandon(str(error))
                raise
            stores[-1].close()
    except Exception as error:
        why = f"{{type(error).__name__}}: {{error}}"
    print("done " + json.dumps(why), flush=True)
"""


class Processes:
    """Workers and servers. Leaving the block ends them.

    Args:
        workers, servers: how many are started; a case uses the first ones.
        folder: for the script and the results.
    """

    def __init__(self, workers, servers, folder):
        self.script = folder / "kv_process.py"
        self.script.write_text(SCRIPT.format(here=str(HERE)))
        self.folder = folder
        self.roles = [("server", i) for i in range(servers)] + [("worker", i) for i in range(workers)]
        self.processes = {}

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for process in self.processes.values():
            process.kill()
            process.communicate()
        self.processes = {}

    def _of(self, role, number):
        assert (role, number) in self.roles
        if (role, number) not in self.processes:
            environment = {"OMP_NUM_THREADS": "1", "PENSTOCK_JOB_TOKEN": "secret", "PYTHONUNBUFFERED": "1"}
            self.processes[role, number] = subprocess.Popen(
                [sys.executable, str(self.script), role, str(number)],
                env={**os.environ, **environment},
                text=True,
                bufsize=1,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
            )
        return self.processes[role, number]

    def run(self, path, workers, servers):
        """Returns what each rank got. Raises AssertionError with the words of the processes that failed."""
        folder = self.folder / path.name[: -len(".json")]
        folder.mkdir()
        task = {
            "case": str(path),
            "servers": [f"127.0.0.1:{port}" for port in free_ports(servers)],
            "job": folder.name,
            "folder": str(folder),
        }
        used = [self._of("server", i) for i in range(servers)] + [self._of("worker", i) for i in range(workers)]
        for process in used:
            process.stdin.write(json.dumps(task) + "\n")
            process.stdin.flush()
        ends = [self._end_of(process) for process in used]
        if ends != [""] * len(ends):
            self.__exit__()  # the next case begins with new processes
            raise AssertionError("\n".join(ends))
        results = []
        for rank in range(workers):
            with np.load(folder / f"r{rank}.npz") as arrays:
                results.append(dict(arrays))
        return results

    def _end_of(self, process):
        until = time.monotonic() + WAIT_S
        while True:
            ready, _, _ = select.select([process.stdout], [], [], max(0, until - time.monotonic()))
            line = process.stdout.readline() if ready else ""
            if line.startswith("done "):
                return json.loads(line[len("done ") :])
            if not line:
                process.kill()
                return f"no answer: {process.communicate()[1][-2000:]}"
