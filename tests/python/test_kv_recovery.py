"""Checkpoints of key-value stores over pservers, in real processes: a job that is killed, or asked to stop, continues
from a round of each key; and what has no checkpoints is refused by name."""

import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import textwrap
import time

import pytest

WAIT_S = 120
WORKERS = 2

# The values of one worker after each step are in a file, so a test can compare jobs.
SCRIPT = """
    import os, time
    import numpy as np
    from penstock import kv as keyed
    if os.environ['TRAINING_ROLE'] == 'PSERVER':
        with open('pserver.pid', 'w') as file:
            file.write(str(os.getpid()))
    kv = keyed.create('dist_sync')
    steps, dies_at = int(os.environ['STEPS']), os.environ.get('DIES_AT', '')
    names = ['w', 'b', 'rare']
    for name in names:
        kv.init(name, np.full(4, 1.0, 'float32'))
    kv.init('t', keyed.RowSparse([0], np.ones((1, 2), 'float32'), (3, 2)))
    kv.set_optimizer(keyed.optimizer.create('{optimizer}', learning_rate=0.5, {arguments}
        lr_scheduler=keyed.lr_scheduler.FactorScheduler(4, 0.5)))
    begin = kv.rounds('w')
    print('worker', kv.rank, 'begins at', begin, [kv.rounds(name) for name in names], flush=True)
    for step in range(begin, steps):
        if dies_at == str(step) and begin == 0 and kv.rank == 1:
            while not os.path.exists(os.path.join(os.environ['CHECKPOINTS'], os.environ['DIES_AFTER'])):
                time.sleep(0.01)
            os.kill(os.getpid(), 9)
        for name in names:
            if name != 'rare' or step % 2 == 0:
                kv.push(name, np.full(4, 1.0 + kv.rank + step, 'float32'))
        kv.push('t', keyed.RowSparse([2, kv.rank], np.full((2, 2), 1.0 + step, 'float32'), (3, 2)))
        values = [kv.pull(name).tolist() for name in names]
        rows = kv.row_sparse_pull('t', row_ids=range(3)).values.tolist()
        if 'PAUSE' in os.environ:
            time.sleep(float(os.environ['PAUSE']))
    print('worker', kv.rank, 'ends with', values, rows, [kv.rounds(name) for name in names], flush=True)
"""


class Job:
    """Runs the script under the launcher."""

    def __init__(self, folder, optimizer="sgd", arguments="momentum=0.5,", script=SCRIPT, servers=2):
        self.folder = folder
        self.checkpoints = folder / "checkpoints"
        self.servers = servers
        self.script = folder / "job.py"
        text = textwrap.dedent(script)
        self.script.write_text(text.replace("{optimizer}", optimizer).replace("{arguments}", arguments))
        self.runs = 0

    def start(self, *options, steps=7, **environment):
        self.runs += 1
        self.logs = self.folder / f"logs{self.runs}"
        command = [sys.executable, "-m", "penstock.distributed.launch", "--server_num", str(self.servers)]
        command += ["--worker_num", str(WORKERS), "--log_dir", str(self.logs), *options, str(self.script)]
        return subprocess.Popen(
            command,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            cwd=self.folder,
            env={**os.environ, "STEPS": str(steps), "CHECKPOINTS": str(self.checkpoints), **environment},
        )

    def run(self, *options, fails=False, **environment):
        process = self.start(*options, **environment)
        try:
            output, _ = process.communicate(timeout=WAIT_S)
        finally:
            process.kill()
        logs = "\n".join(path.read_text() for path in sorted(self.logs.rglob("*")) if path.is_file())
        assert (process.returncode != 0) == fails, output + logs
        return output + logs

    def saving(self, every=3):
        return ["--checkpoint_dir", str(self.checkpoints), "--checkpoint_steps", str(every)]


def ends(logs):
    """Returns what the workers print at the end. The launcher shows the lines of one of them, too."""
    found = sorted(set(re.findall(r"worker \d+ ends with .*", logs)))
    assert len(found) == WORKERS, logs
    return found


@pytest.mark.parametrize(("optimizer", "arguments"), [("sgd", "momentum=0.5,"), ("adam", ""), ("nag", "momentum=0.5,")])
def test_a_job_that_ended_at_a_checkpoint_continues_as_if_it_had_not(tmp_path, optimizer, arguments):
    job = Job(tmp_path, optimizer, arguments)
    undisturbed = ends(job.run())
    job.run(*job.saving(), steps=4)  # one step behind a checkpoint
    assert {path.name for path in job.checkpoints.iterdir()} == {"step-3"}
    logs = job.run(*job.saving(), "--resume")
    assert "worker 0 begins at 3 [3, 3, 2]" in logs and "worker 1 begins at 3 [3, 3, 2]" in logs
    assert ends(logs) == undisturbed


def test_a_part_says_which_keys_it_has_and_what_updates_them(tmp_path):
    job = Job(tmp_path, servers=1)
    job.run(*job.saving(), steps=6)
    manifest = json.loads((job.checkpoints / "step-6" / "part-0-of-1.json").read_text())
    assert {key["name"]: (key["type"], key["rounds"], key["since"]) for key in manifest["keys"]} == {
        "w": ("f32[4]", 6, 6),
        "b": ("f32[4]", 6, 6),
        "rare": ("f32[4]", 3, 3),
        "t": ("f32[3, 2]", 6, 6),
    }
    assert [text.split(" ")[0] for text in manifest["optimizers"]] == ["sgd"]
    tool = pathlib.Path(sys.executable).with_name("penstock")
    show = subprocess.run(
        [tool, "ckpt", "verify", str(job.checkpoints)], capture_output=True, text=True, timeout=WAIT_S
    )
    assert show.returncode == 0, show.stdout + show.stderr


@pytest.mark.parametrize("victim", ["worker", "pserver"])
def test_a_killed_process_restarts_the_job_from_its_checkpoint(tmp_path, victim):
    job = Job(tmp_path)
    undisturbed = ends(job.run())
    options = [*job.saving(2), "--max_restart", "1"]
    if victim == "worker":
        logs = job.run(
            *options,
            "--on_trainer_loss",
            "abort",
            "--max_role_restart",
            "0",
            DIES_AT="5",
            DIES_AFTER="step-4/part-0-of-2.json",
        )
    else:
        process = job.start(*options, PAUSE="0.3")
        try:
            _wait_for(job.checkpoints / "step-2" / "part-1-of-2.json")
            os.kill(int((tmp_path / "pserver.pid").read_text()), signal.SIGKILL)
            output, _ = process.communicate(timeout=WAIT_S)
        finally:
            process.kill()
        logs = output + "\n".join(path.read_text() for path in sorted(job.logs.rglob("*")) if path.is_file())
        assert process.returncode == 0, logs
    assert "continues after step" in logs, logs
    assert ends(logs) == undisturbed


def test_a_killed_worker_alone_comes_back_and_checkpoints_go_on(tmp_path):
    job = Job(tmp_path)
    undisturbed = ends(job.run())
    logs = job.run(*job.saving(2), DIES_AT="5", DIES_AFTER="step-4/part-0-of-2.json")
    assert "worker 1 begins at 5" in logs and "continues after step" not in logs, logs
    assert ends(logs) == undisturbed
    assert (job.checkpoints / "step-6" / "part-1-of-2.json").exists()


DEAD = """
    import os, time
    import numpy as np
    if os.environ['TRAINING_ROLE'] == 'TRAINER' and os.path.exists('dead'):
        while not os.path.exists('seen'):             # the new process of worker 1
            time.sleep(0.01)
    from penstock import kv as keyed
    kv = keyed.create('dist_sync')
    kv.init('w', np.zeros(2))
    print('worker', kv.rank, 'counts', kv.num_dead_node(4), flush=True)
    if kv.rank == 1 and not os.path.exists('seen'):
        open('dead', 'w').close()
        os.kill(os.getpid(), 9)
    if kv.rank == 0:
        while kv.num_dead_node(4) == 0:
            time.sleep(0.01)
        print('worker 0 sees', kv.num_dead_node(4), kv.num_dead_node(2), kv.num_dead_node(), flush=True)
        open('seen', 'w').close()
    kv.push('w', np.ones(2))
    print('worker', kv.rank, 'ends with', kv.pull('w').tolist(), kv.num_dead_node(), flush=True)
"""


def test_a_dead_worker_is_counted_until_its_new_process_comes(tmp_path):
    job = Job(tmp_path, script=DEAD)
    logs = job.run("--max_role_restart", "1", "--on_trainer_loss", "wait")
    assert "worker 0 sees 1 0 1" in logs, logs
    assert ends(logs) == [f"worker {rank} ends with [2.0, 2.0] 0" for rank in range(WORKERS)]


def test_a_job_that_is_asked_to_stop_ends_at_its_last_checkpoint(tmp_path):
    job = Job(tmp_path)
    undisturbed = ends(job.run(steps=12))
    process = job.start(*job.saving(2), steps=12, PAUSE="0.3")
    try:
        _wait_for(job.checkpoints / "step-2" / "part-1-of-2.json")
        _wait_for(job.checkpoints / "step-2" / "part-0-of-2.json")
        process.send_signal(signal.SIGTERM)
        output, _ = process.communicate(timeout=WAIT_S)
    finally:
        process.kill()
    assert "its checkpoint is" in output, output
    logs = job.run(*job.saving(2), "--resume", steps=12)
    assert ends(logs) == undisturbed


REFUSED = """
    import numpy as np
    from penstock import kv as keyed
    kv = keyed.create('dist_{mode}')
    {call}
    kv.init('w', np.zeros(3, 'float32'))
    kv.push('w', np.ones(3, 'float32'))
    kv.wait()
    kv.barrier()
"""


@pytest.mark.parametrize(
    ("mode", "call", "words"),
    [
        ("async", "", "asynchronous store"),
        ("sync", "keyed.Table('t', 4, keyed.optimizer.create('sgd')).lookup([3])", "rows of any id"),
        ("sync", "kv.set_gradient_compression({'type': '2bit'})", "compression"),
    ],
)
def test_what_has_no_checkpoints_is_refused(tmp_path, mode, call, words):
    job = Job(tmp_path, script=REFUSED.replace("{mode}", mode).replace("{call}", call), servers=1)
    logs = job.run(*job.saving(), fails=True)
    assert "E-kv-checkpoint" in logs and words in logs, logs


def test_an_interval_is_needed(tmp_path):
    job = Job(tmp_path)
    logs = job.run("--checkpoint_dir", str(job.checkpoints), "--checkpoint_steps", "auto", fails=True)
    assert "E-kv-checkpoint" in logs and "--checkpoint_steps K" in logs, logs


def test_a_job_of_another_form_does_not_continue(tmp_path):
    job = Job(tmp_path)
    job.run(*job.saving(), steps=4)
    job.servers = 1
    assert "E-checkpoint-differs" in job.run(*job.saving(), "--resume", fails=True)
    other = Job(tmp_path, "adam", "")
    logs = other.run(*job.saving(), "--resume", fails=True)
    assert "E-checkpoint-differs" in logs and "adam" in logs, logs


def _wait_for(path):
    end = time.monotonic() + WAIT_S
    while not path.exists():
        assert time.monotonic() < end, f"{path} has not come"
        time.sleep(0.02)
