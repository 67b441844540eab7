"""Runs the ranks of a job without servers as processes. Imports no test."""

import os
import subprocess
import sys
import textwrap

from penstock._src.launch.job import free_ports

WAIT_S = 120


class Ranks:
    """Processes of one script, each with the launcher's environment. Leaving the block ends running processes.

    with Ranks(tmp_path, SCRIPT, 2) as ranks:
        for code, out, err in ranks.ends(): ...
    """

    def __init__(self, folder, script, ranks, *arguments, environment=None, environment_of=None, python=None):
        self._folder, self._python, self._arguments = folder, python or sys.executable, [str(one) for one in arguments]
        (folder / "rank.py").write_text(textwrap.dedent(script))
        self.addresses = [f"127.0.0.1:{port}" for port in free_ports(ranks)]
        self._environment = environment or {}
        self._environment_of = environment_of or (lambda rank: {})
        self.processes = [self._started(rank, {}) for rank in range(ranks)]

    def _started(self, rank, environment):
        return subprocess.Popen(
            [self._python, str(self._folder / "rank.py"), *self._arguments],
            env={
                **os.environ,
                "OMP_NUM_THREADS": "1",
                "PENSTOCK_JOB_TOKEN": "secret",
                "PENSTOCK_JOB_ID": "ranks",
                "PADDLE_TRAINER_ENDPOINTS": ",".join(self.addresses),
                "PADDLE_TRAINERS_NUM": str(len(self.addresses)),
                "PADDLE_TRAINER_ID": str(rank),
                "PADDLE_CURRENT_ENDPOINT": self.addresses[rank],
                "TRAINING_ROLE": "TRAINER",
                "PYTHONUNBUFFERED": "1",
                **self._environment,
                **self._environment_of(rank),
                **environment,
            },
            cwd=self._folder,
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )

    def start_again(self, rank):
        """Starts a new process of a rank that has ended; returns the old one's exit code."""
        old = self.processes[rank]
        old.communicate(timeout=WAIT_S)
        self.processes[rank] = self._started(rank, {"PENSTOCK_ROLE_RESTART_COUNT": "1"})
        return old.returncode

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for process in self.processes:
            if process.poll() is None:
                process.kill()
            process.communicate()

    def ends(self, wait_s=WAIT_S):
        """[(exit code, standard output, standard error)] of all ranks."""
        texts = [process.communicate(timeout=wait_s) for process in self.processes]
        return [(process.returncode, *both) for process, both in zip(self.processes, texts)]

    def end_well(self):
        """The outputs of all ranks; every exit code must be 0."""
        ends = self.ends()
        assert [end[0] for end in ends] == [0] * len(ends), "\n".join(end[2] for end in ends)
        return [end[1] for end in ends]
