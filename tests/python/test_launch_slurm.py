"""--launcher slurm in a Slurm of our own: a controller and two nodes, which are this machine."""

import contextlib
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import textwrap
import time

import pytest
from launched import TRAIN
from penstock._src.launch.job import free_ports

LAUNCH = [sys.executable, "-m", "penstock.distributed.launch"]
WAIT_S = 120
PATH = f"{os.environ.get('PATH', '')}:/usr/sbin"
PROGRAMS = ("slurmctld", "slurmd", "sbatch", "srun", "scontrol", "squeue", "scancel")
NODES = ("penstock-node1", "penstock-node2")  # no name service knows them: Slurm has their addresses

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        os.geteuid() != 0 or any(shutil.which(name, path=PATH) is None for name in PROGRAMS),
        reason="takes root, slurmctld, slurmd and slurm-client",
    ),
]

SHOW = """
    name = "-".join(filter(None, [os.environ["DMLC_ROLE"], os.environ.get("DMLC_TASK_ID")]))
    with open(name + ".json", "w") as out:
        json.dump({"argv": sys.argv[1:], "environment": dict(os.environ)}, out)
"""


class Slurm:
    def __init__(self, folder):
        self.folder = folder
        self.conf = folder / "slurm.conf"
        control, *ports = free_ports(3)
        nodes = "".join(
            f"NodeName={name} NodeHostname={socket.gethostname()} NodeAddr=127.0.0.1 Port={port} CPUs=8 State=UNKNOWN\n"
            for name, port in zip(NODES, ports)
        )
        self.conf.write_text(
            f"ClusterName=test\nSlurmctldHost={socket.gethostname()}(127.0.0.1)\nSlurmUser=root\n"
            f"SlurmctldPort={control}\n"
            f"AuthType=auth/none\nCredType=cred/none\nStateSaveLocation={folder}/state\nSlurmdSpoolDir={folder}/%n\n"
            f"SlurmctldPidFile={folder}/control.pid\nSlurmdPidFile={folder}/%n.pid\nProctrackType=proctrack/linuxproc\n"
            "TaskPlugin=task/none\nSchedulerType=sched/backfill\nSchedulerParameters=bf_interval=1\n"
            "SelectType=select/cons_tres\nSelectTypeParameters=CR_Core\nSlurmdParameters=config_overrides\n"
            f"MpiDefault=none\nKillWait=5\nReturnToService=2\n{nodes}"
            "PartitionName=all Nodes=ALL Default=YES State=UP\n"
        )
        self.environment = {
            **{name: value for name, value in os.environ.items() if not name.startswith(("SLURM_", "PENSTOCK_JOB"))},
            "SLURM_CONF": str(self.conf),
            "PATH": PATH,
        }
        self.processes = []

    def start(self):
        (self.folder / "state").mkdir()
        commands = [["slurmctld", "-D", "-c"], *(["slurmd", "-D", "-N", name] for name in NODES)]
        for command in commands:
            (self.folder / command[-1]).mkdir(exist_ok=True)
            log = (self.folder / f"{command[0]}.{command[-1]}.log").open("wb")
            self.processes.append(
                subprocess.Popen(command, env=self.environment, stdout=log, stderr=log, stdin=subprocess.DEVNULL)
            )
            log.close()
        self.wait_until(lambda: self.run("sinfo", "-h", "-o", "%T %D").split() == ["idle", "2"])

    def run(self, *command, cwd=None):
        done = subprocess.run(
            [str(word) for word in command],
            env=self.environment,
            cwd=cwd,
            text=True,
            capture_output=True,
            timeout=WAIT_S,
        )
        return done.stdout if done.returncode == 0 else done.stdout + done.stderr

    def wait_until(self, condition):
        deadline = time.monotonic() + WAIT_S
        while not condition():
            assert time.monotonic() < deadline, "".join(path.read_text()[-3000:] for path in self.folder.glob("*.log"))
            assert all(process.poll() is None for process in self.processes), "Slurm does not run"
            time.sleep(0.1)

    def submit(self, folder, body, *arguments):
        """Submits a job; returns its number."""
        (folder / "job.py").write_text("import json, os, sys\n" + textwrap.dedent(body))
        text = self.run(*LAUNCH, "--launcher", "slurm", *arguments, cwd=folder)
        return re.fullmatch(r"Submitted batch job (\d+)\n", text)[1]

    def wait_for(self, job):
        self.wait_until(lambda: not self.run("squeue", "-h", "-j", job, "-o", "%T").startswith(("P", "R", "C")))

    def close(self):
        self.run("scancel", "-u", "root")
        for process in reversed(self.processes):
            process.terminate()
        for process in self.processes:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(20)
            process.kill()
            process.wait(WAIT_S)


@pytest.fixture(scope="module")
def slurm(tmp_path_factory):
    slurm = Slurm(tmp_path_factory.mktemp("slurm"))
    try:
        slurm.start()
        yield slurm
    finally:
        slurm.close()


def output(folder):
    return "".join(path.read_text() for path in (folder / "mylog").glob("slurm-*.out"))


def test_one_heterogeneous_job_has_scheduler_servers_and_workers(slurm, tmp_path):
    line = ["-n", "2", "-s", "2", "--env", "trainer.1:B=own", "--env-worker", "B:it's"]
    job = slurm.submit(tmp_path, SHOW, *line, sys.executable, "job.py", "a b", "$HOME")
    slurm.wait_for(job)
    roles = {path.stem: json.loads(path.read_text()) for path in tmp_path.glob("*.json")}
    assert set(roles) == {"scheduler", "server-2", "server-3", "worker-0", "worker-1"}, output(tmp_path)
    assert all(role["argv"] == ["a b", "$HOME"] for role in roles.values())
    environments = {name: role["environment"] for name, role in roles.items()}
    assert (environments["worker-0"]["B"], environments["worker-1"]["B"]) == ("it's", "own")
    assert environments["server-2"]["SLURMD_NODENAME"] != environments["worker-0"]["SLURMD_NODENAME"]
    assert {one["DMLC_PS_ROOT_URI"] for one in environments.values()} == {"127.0.0.1"}
    assert len({one["PENSTOCK_JOB_TOKEN"] for one in environments.values()}) == 1


def test_a_job_near_the_end_of_its_allocation_is_saved_queued_again_and_continued(slurm, tmp_path):
    loop = "for step in range(int(sys.argv[1] if len(sys.argv) > 1 else 5)):"
    assert loop in TRAIN
    body = TRAIN.replace(
        loop,
        """import penstock
    print("begins at", penstock.resume_step(), flush=True)
    for step in range(penstock.resume_step(), 10**7):
        if os.path.exists("enough"):
            break""",
    )
    options = ["--checkpoint_dir", "saved", "--checkpoint_steps", "20", "--server_num", "1", "--worker_num", "1"]
    options += ["--node_ip", "127.0.0.1"]
    job = slurm.submit(tmp_path, body, *options, "job.py")
    saved = tmp_path / "saved"
    slurm.wait_until(lambda: list(saved.glob("step-*")))
    slurm.run("scancel", "--batch", "--signal=USR1", job)
    slurm.wait_until(lambda: " Restarts=1 " in slurm.run("scontrol", "show", "job", job))
    stopped = re.search(r"launch: stopped by SIGTERM after step (\d+); its checkpoint is", output(tmp_path))
    assert stopped is not None, output(tmp_path)
    (tmp_path / "enough").touch()
    log = tmp_path / "mylog" / "workerlog.0"

    def continues():
        slurm.run("scontrol", "update", f"JobId={job}", "StartTime=now")  # Slurm would wait for two minutes
        return f"begins at {stopped[1]}\n" in log.read_text()

    slurm.wait_until(continues)
    slurm.wait_for(job)
