"""Runs the processes of a job as MXNet's launcher starts them. Imports no test."""

import os
import subprocess
import sys
import textwrap

from penstock._src.launch.job import free_ports

WAIT_S = 120


class Dmlc:
    """The processes of a job as MXNet's launcher starts them: scheduler, servers, workers, of one script."""

    def __init__(self, folder, script, workers, servers, **environment):
        path = folder / "job.py"
        path.write_text(textwrap.dedent(script))
        common = {
            **os.environ,
            "OMP_NUM_THREADS": "1",
            "DMLC_PS_ROOT_URI": "127.0.0.1",
            "DMLC_PS_ROOT_PORT": str(free_ports(1)[0]),
            "DMLC_NUM_WORKER": str(workers),
            "DMLC_NUM_SERVER": str(servers),
            "PYTHONUNBUFFERED": "1",
            **environment,
        }
        roles = [("scheduler", "")] + [("worker", str(i)) for i in range(workers)]
        roles += [("server", str(workers + i)) for i in range(servers)]
        self.roles = [role for role, _ in roles]
        self._starts = [(str(path), folder, {**common, "DMLC_ROLE": role}, task) for role, task in roles]
        self.processes = [self._start(place) for place in range(len(roles))]

    def _start(self, place):
        path, folder, environment, task = self._starts[place]
        return subprocess.Popen(
            [sys.executable, path],
            env={**environment, **({"DMLC_TASK_ID": task} if task else {})},
            cwd=folder,
            text=True,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )

    def kill_and_start_again(self, place):
        self.processes[place].kill()
        self.processes[place].communicate()
        self.processes[place] = self._start(place)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for process in self.processes:
            process.kill()
            process.communicate()

    def ends(self):
        """[(role, exit code, standard output, standard error)]."""
        texts = [process.communicate(timeout=WAIT_S) for process in self.processes]
        codes = [process.returncode for process in self.processes]
        return [(role, code, *text) for role, code, text in zip(self.roles, codes, texts)]
