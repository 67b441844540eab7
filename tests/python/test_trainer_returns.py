"""Trainers that are killed while their job runs, and new processes that take their places."""

import re
import subprocess
import sys
import textwrap
import time

import job_script
import pytest
from penstock._src.launch.job import free_ports

WAIT_S = 120
STEPS = 12

# DIES: "STEP:MILLISECONDS": the process kills itself so long after the begin of that step, or of its first one if that
# is later; STEPS: of the startup program. GATE: a step that begins only when the file `go` is there. RAISES: the step
# in which the script fails.
SCRIPT = """
    import os, signal, sys, threading, time
    import numpy as np
    import penstock
    import penstock.fluid as fluid
    from job_script import program_of

    role, index, steps, folder = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
    endpoints = os.environ['ENDPOINTS']
    fluid.default_main_program().random_seed = fluid.default_startup_program().random_seed = 3
    x, y = fluid.data('x', [None, 64]), fluid.data('y', [None, 1])
    words = fluid.data('words', [None, 1], 'int64')
    sharded = 'SHARDED' in os.environ
    word = fluid.layers.embedding(words, [400, 8], is_sparse=True, is_distributed=sharded, param_attr='table')
    frozen = fluid.layers.fc(x, 8, param_attr=fluid.ParamAttr('frozen', trainable=False), bias_attr=False)
    output = fluid.layers.fc([fluid.layers.fc(x, 300, act='tanh', param_attr='w'), word, frozen], 1)
    loss = fluid.layers.mean(fluid.layers.square_error_cost(output, y))
    fluid.optimizer.Adam(fluid.layers.exponential_decay(0.01, 2, 0.9, staircase=True), lazy_mode=True).minimize(loss)
    t = fluid.DistributeTranspiler()
    t.transpile(index if role == 'trainer' else 0, pservers=endpoints, trainers=2, sync_mode='ASYNC' not in os.environ)
    exe = fluid.Executor(fluid.CPUPlace())
    program = program_of(role, index, exe, t)
    dies_in, after_ms = map(int, os.environ.get('DIES', '-1:0').split(':'))
    def die():
        os.kill(os.getpid(), signal.SIGKILL)
    if dies_in == steps:  # in the startup program
        threading.Timer(after_ms / 1000, die).start()
    exe.run(fluid.default_startup_program())
    first = penstock.resume_step()
    print('from step', first, flush=True)
    if 0 <= dies_in < steps:
        dies_in = max(dies_in, first)
    truth = np.random.RandomState(9).rand(64, 1).astype('float32') / 8
    for step in range(first, steps):
        random = np.random.RandomState(2 * step + index)
        batch = random.rand(16, 64).astype('float32')
        feed = {'x': batch, 'y': batch @ truth, 'words': random.randint(0, 400, [16, 1])}
        while os.environ.get('GATE') == str(step) and not os.path.exists(os.path.join(folder, 'go')):
            time.sleep(0.01)
        if os.environ.get('RAISES') == str(step):
            raise ValueError('the data ran out')
        if step == dies_in:
            die() if after_ms == 0 else threading.Timer(after_ms / 1000, die).start()
        value, = exe.run(program, feed=feed, fetch_list=[loss])
    print('loss', float(value[0]), flush=True)
    if index == 0:
        fluid.io.save_persistables(exe, os.path.join(folder, 'saved'), program)
    exe.close()
"""


class Job:
    """Two pservers and two trainers."""

    def __init__(self, folder, loss, **environment):
        folder.mkdir()
        self.folder = folder
        (folder / "job.py").write_text(textwrap.dedent(SCRIPT))
        self.environment = {
            **job_script.environment(),
            "OMP_NUM_THREADS": "1",
            "ENDPOINTS": ",".join(f"127.0.0.1:{port}" for port in free_ports(2)),
            "PENSTOCK_CHECKPOINT_DIR": str(folder),
            "PENSTOCK_JOB_TOKEN": "secret",
            **({"PENSTOCK_ON_TRAINER_LOSS": loss} if loss else {}),
            **environment,
        }
        self.processes = {}

    def start(self, role, index, **environment):
        with open(self.folder / f"{role}.{index}.log", "a") as log:
            self.processes[role, index] = subprocess.Popen(
                [sys.executable, "job.py", role, str(index), str(STEPS), str(self.folder)],
                cwd=self.folder,
                env={**self.environment, **environment},
                stdout=log,
                stderr=subprocess.STDOUT,
            )

    def start_all(self, **of_trainer_1):
        for index in range(2):
            self.start("pserver", index)
        self.start("trainer", 0)
        self.start("trainer", 1, **of_trainer_1)

    def end_of(self, role, index):
        return self.processes[role, index].wait(WAIT_S)

    def codes(self):
        return [process.wait(WAIT_S) for process in self.processes.values()]

    def said(self, role, index):
        return (self.folder / f"{role}.{index}.log").read_text()

    def all_said(self):
        return "\n".join(path.read_text() for path in sorted(self.folder.glob("*.log")))

    def saved(self):
        """{name: bytes} of what trainer 0 has saved, except the names of its temporary files."""
        saved = self.folder / "saved"
        paths = [path for path in sorted(saved.rglob("*")) if path.is_file() and path.name != "__digests__"]
        return {str(path.relative_to(saved)): path.read_bytes() for path in paths}

    def last_loss(self, index):
        return float(self.said("trainer", index).rpartition("loss ")[2].split()[0])


@pytest.fixture
def job(tmp_path):
    jobs = []

    def make(name, loss, **environment):
        jobs.append(Job(tmp_path / name, loss, **environment))
        return jobs[-1]

    yield make
    for one in jobs:
        for process in one.processes.values():
            process.kill()
            process.wait()


def until(job, is_so):
    end = time.monotonic() + WAIT_S
    while not is_so():
        assert time.monotonic() < end, job.all_said()
        time.sleep(0.01)


def undisturbed(job, **environment):
    whole = job("whole", None, **environment)
    whole.start_all()
    assert whole.codes() == [0] * 4, whole.all_said()
    return whole


def with_deaths(job, loss, points, **environment):
    """A job whose trainer 1 dies at each of these points, one after the other."""
    hurt = job("hurt", loss, **environment)
    hurt.start_all(DIES=points[0])
    for point in [*points[1:], "-1:0"]:
        assert hurt.end_of("trainer", 1) == -9, hurt.all_said()
        hurt.start("trainer", 1, DIES=point)
    assert hurt.codes() == [0] * 4, hurt.all_said()
    return hurt


@pytest.mark.parametrize("environment", [{}, {"SHARDED": "1"}], ids=["sliced", "sharded"])
def test_a_trainer_that_is_waited_for_leaves_every_byte_as_it_was(job, environment):
    whole = undisturbed(job, **environment)
    points = [f"{STEPS}:1", "3:0", "4:2", "6:7"]
    hurt = with_deaths(job, "wait", points, **environment)
    assert hurt.saved() == whole.saved()
    said = hurt.all_said()
    assert "from step 3" in hurt.said("trainer", 1)
    assert "is gone" in said and "the job waits for a new process of this trainer" in said
    assert "a new process of trainer 1 has come after" in said
    assert "this trainer takes the place of one that has died, and begins with step 3" in hurt.said("trainer", 1)


def test_the_wait_says_which_trainer_is_missing(job):
    hurt = job("hurt", "wait", PENSTOCK_REPORT_AFTER="1")
    hurt.start_all(DIES="3:0")
    assert hurt.end_of("trainer", 1) == -9
    until(hurt, lambda: "which waits for trainer 1 (its process ended" in hurt.said("trainer", 0))
    hurt.start("trainer", 1)
    assert hurt.codes() == [0] * 4, hurt.all_said()


def test_the_others_go_on_without_a_trainer_until_it_is_back(job):
    whole = undisturbed(job)
    hurt = job("hurt", "shrink", GATE="8")
    hurt.start_all(DIES="2:0")
    assert hurt.end_of("trainer", 1) == -9, hurt.all_said()
    hurt.start("trainer", 1)
    until(hurt, lambda: hurt.said("trainer", 1).count("from step") == 2)
    (hurt.folder / "go").touch()
    assert hurt.codes() == [0] * 4, hurt.all_said()
    assert "the others go on without this trainer" in hurt.all_said()
    steps = [int(step) for step in re.findall(r"from step (\d+)", hurt.said("trainer", 1))]
    assert steps[0] == 0 and 2 < steps[1] <= 8
    for index in range(2):
        assert hurt.last_loss(index) < 2 * whole.last_loss(index) + 0.05


def test_a_job_that_goes_on_without_a_trainer_ends_without_it(job):
    hurt = job("hurt", "shrink")
    hurt.start_all(DIES="2:0")
    assert hurt.codes() == [0, 0, 0, -9], hurt.all_said()
    assert hurt.saved()


def test_without_the_setting_a_death_ends_the_job(job):
    hurt = job("hurt", None)
    hurt.start_all(DIES="3:0")
    codes = hurt.codes()
    assert codes[-1] == -9 and 0 not in codes
    assert "trainer 1 is gone" in hurt.said("trainer", 0)


def test_an_older_process_of_a_trainer_is_fenced(job):
    whole = undisturbed(job)
    hurt = job("hurt", "wait", GATE="5")
    hurt.start_all()
    until(hurt, lambda: "from step" in hurt.said("trainer", 1))
    older = hurt.processes["trainer", 1]
    hurt.start("trainer", 1)  # and the older one lives
    until(hurt, lambda: all("a new process of trainer 1 has come" in hurt.said("pserver", s) for s in range(2)))
    (hurt.folder / "go").touch()
    assert hurt.codes() == [0] * 4, hurt.all_said()
    assert older.wait(WAIT_S) != 0
    assert "this process is its older instance" in hurt.said("trainer", 1)
    assert hurt.saved() == whole.saved()


def test_an_error_of_the_script_ends_the_job(job):
    hurt = job("hurt", "wait")
    hurt.start_all(RAISES="3")
    assert 0 not in hurt.codes()
    assert "trainer 1 failed: ValueError: the data ran out" in hurt.said("trainer", 0)


def test_asynchronous_jobs_refuse_to_go_on_without_a_trainer(job):
    hurt = job("hurt", "shrink", ASYNC="1")
    hurt.start_all()
    assert 0 not in hurt.codes()
    assert "[E-trainer-loss-mode]" in hurt.said("trainer", 0)
