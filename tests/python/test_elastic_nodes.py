"""Elastic ranks over two machines, whose launchers decide alike. The machines are loopback addresses here."""

import os
import pathlib
import signal
import subprocess
import sys
import textwrap
import time

import pytest
from penstock._src.launch.job import free_ports
from test_elastic import TRAIN, WAIT_S, result

HOSTS = ("127.0.0.1", "127.0.0.2")


class Machines:
    """The launchers of two machines, with two ranks each."""

    def __init__(self, folder, script, *arguments, options=((), ())):
        (folder / "train.py").write_text(textwrap.dedent(script))
        control, trainers = free_ports(2)
        self.folder, self.launchers = folder, []
        for node, host in enumerate(HOSTS):
            machines = ["--cluster_node_ips", ",".join(HOSTS), "--node_ip", host, "--control_port", str(control)]
            roles = ["--worker_num", "2", "--started_port", str(trainers), "--log_dir", f"logs{node}", "--quiet"]
            command = [sys.executable, "-m", "penstock.distributed.launch", *machines, *roles, *options[node]]
            self.launchers.append(
                subprocess.Popen(
                    [*command, "train.py", *map(str, arguments)],
                    cwd=folder,
                    env=os.environ | {"OMP_NUM_THREADS": "1", "PENSTOCK_JOB_TOKEN": "of this test"},
                    text=True,
                    stderr=subprocess.PIPE,
                )
            )

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        for launcher in self.launchers:
            launcher.kill()
            launcher.communicate()

    def ends(self):
        """[(exit code, error output) of each launcher]."""
        said = [launcher.communicate(timeout=WAIT_S)[1] for launcher in self.launchers]
        return list(zip((launcher.returncode for launcher in self.launchers), said))

    def log(self, rank):
        path = self.folder / f"logs{rank // 2}" / f"workerlog.{rank}"
        return path.read_text().splitlines() if path.exists() else []


def each(*options):
    return options, options


def test_a_rank_is_restarted_on_its_machine_and_the_others_keep_their_processes(tmp_path):
    with Machines(tmp_path, TRAIN, 6, 3, 3, 1, options=each("--max_role_restart", "1")) as job:
        ends = job.ends()
        assert [code for code, _ in ends] == [0, 0], (ends, job.log(0))
        for _, said in ends:
            assert "launch: trainer 3 (pid" in said and "it is restarted (1 of 1)" in said, said
            assert "launch: round 1 begins with 4 ranks" in said, said
        for rank in range(4):
            assert result(job.log(rank))[0] == "trained 6 [24.0, 36.0] [4, 4, 4, 4, 4, 4]"
            assert result(job.log(rank)) == result(job.log(0))


# The last two ranks show that they work, and wait: their machine is lost. The others then go on without them.
LOST = """
    import os, time
    import numpy as np
    import penstock.hvd as hvd
    hvd.init()
    state = hvd.elastic.ObjectState(batch=0, sizes=[])

    @hvd.elastic.run
    def train(state):
        while state.batch < 4:
            if state.batch == 2 and hvd.size() == 4:
                open('works.%d' % hvd.rank(), 'w').close()
                if hvd.rank() > 1: time.sleep(1000)
            state.sizes.append(int(hvd.allreduce(np.ones(1), op=hvd.Sum)[0]))
            state.batch += 1
            state.commit()

    train(state)
    print('sizes', state.sizes, hvd.rank(), hvd.local_rank(), hvd.local_size())
"""


def test_the_ranks_of_a_machine_that_is_left_go_on(tmp_path):
    with Machines(tmp_path, LOST, options=each("--min_workers", "2")) as job:
        end = time.monotonic() + WAIT_S
        while not all((tmp_path / f"works.{rank}").exists() for rank in range(4)):
            assert time.monotonic() < end and job.launchers[0].poll() is None, job.ends()
            time.sleep(0.05)
        guard = job.launchers[1].pid
        supervisor = int(pathlib.Path(f"/proc/{guard}/task/{guard}/children").read_text())
        os.kill(supervisor, signal.SIGKILL)
        (code, said), _ = job.ends()
        assert code == 0, (said, job.log(0))
        assert "launch: node 1 (127.0.0.2) is gone: " in said and "; 2 ranks go on, at least 2" in said, said
        assert "launch: round 1 begins with 2 ranks" in said, said
        assert [job.log(rank)[-1] for rank in range(2)] == [f"sizes [4, 4, 2, 2] {rank} {rank} 2" for rank in range(2)]


@pytest.mark.parametrize(
    "options, says",
    [
        (each("--min_workers", "5"), "--min_workers is 5, but the job has 4 ranks   [E-elastic-mode]"),
        ((("--min_workers", "2"), ("--min_workers", "1")), "--min_workers 2 on node 0 (127.0.0.1) and "),
    ],
)
def test_limits_that_the_machines_cannot_have_are_refused(tmp_path, options, says):
    with Machines(tmp_path, LOST, options=options) as job:
        for code, said in job.ends():
            assert code in (1, 2) and says in said, said
        assert job.log(0) == []
