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

    def __init__(self, folder, script, ranks, *arguments, environment=None, environment_of=None):
        path = folder / "rank.py"
        path.write_text(textwrap.dedent(script))
        addresses = [f"127.0.0.1:{port}" for port in free_ports(ranks)]
        self.addresses = addresses
        self.processes = []
        for rank, address in enumerate(addresses):
            own = {
                **os.environ,
                "OMP_NUM_THREADS": "1",
                "PENSTOCK_JOB_TOKEN": "secret",
                "PENSTOCK_JOB_ID": "ranks",
                "PADDLE_TRAINER_ENDPOINTS": ",".join(addresses),
                "PADDLE_TRAINERS_NUM": str(ranks),
                "PADDLE_TRAINER_ID": str(rank),
                "PADDLE_CURRENT_ENDPOINT": address,
                "TRAINING_ROLE": "TRAINER",
                "PYTHONUNBUFFERED": "1",
                **(environment or {}),
                **(environment_of(rank) if environment_of else {}),
            }
            self.processes.append(
                subprocess.Popen(
                    [sys.executable, str(path), *map(str, arguments)],
                    env=own,
                    cwd=folder,
                    text=True,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.PIPE,
                )
            )

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
