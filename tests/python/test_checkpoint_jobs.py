"""Jobs of real processes that are ended and continue from a checkpoint, with the bytes of a job that was not ended."""

import errno
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import textwrap
import time

import numpy as np
import penstock
import pytest
from fleet_jobs import launch_and_read
from penstock import _penstock

WAIT_S = 120

# Trains sys.argv[1] steps and saves what it has in sys.argv[2]. DIES_AT: trainer 1 kills itself in that step of the
# first start (of the job, and of its own process), once there is a whole checkpoint. SHARDED: the table is sharded by
# id; then, without LAZY, rows miss updates. PROGRAM: the file to which trainer 0 writes the main program. SLOW_FROM:
# from this step on, each takes 50 ms more. FLEET: the job is made by Fleet. FULL: pserver 0 may write files of 64 KiB,
# which a part of a checkpoint exceeds. STUCK: pserver 0 stops itself after a checkpoint, so the job cannot be saved.
SCRIPT = """
    import os, signal, sys, time
    import numpy as np
    import penstock
    import penstock.fluid as fluid

    steps, saved = int(sys.argv[1]), sys.argv[2]

    def stop_after_a_checkpoint():
        while penstock._penstock.newest_checkpoint(os.environ['PENSTOCK_CHECKPOINT_DIR']) is None:
            time.sleep(0.01)
        os.kill(os.getpid(), signal.SIGSTOP)

    fluid.default_main_program().random_seed = fluid.default_startup_program().random_seed = int(
        os.environ.get('SEED', 3))
    x, y = fluid.data('x', [None, 64]), fluid.data('y', [None, 1])
    words = fluid.data('words', [None, 1], 'int64')
    word = fluid.layers.embedding(words, [400, 8], is_sparse=True, is_distributed='SHARDED' in os.environ,
                                  param_attr='table')
    frozen = fluid.layers.fc(x, 8, param_attr=fluid.ParamAttr('frozen', trainable=False), bias_attr=False)
    output = fluid.layers.fc([fluid.layers.fc(x, 512, act='tanh', param_attr='w'), word, frozen], 1)
    loss = fluid.layers.mean(fluid.layers.square_error_cost(output, y))
    rate = fluid.layers.exponential_decay(0.01, 2, 0.9, staircase=True)
    optimizer = fluid.optimizer.Adam(rate, lazy_mode='LAZY' in os.environ)
    if 'FLEET' in os.environ:
        from penstock.fluid.incubate.fleet.base import role_maker
        from penstock.fluid.incubate.fleet.parameter_server.distribute_transpiler import fleet
        fleet.init(role_maker.PaddleCloudRoleMaker())
        fleet.distributed_optimizer(optimizer, fluid.DistributeTranspilerConfig()).minimize(loss)
        if fleet.is_server():
            fleet.init_server()
            fleet.run_server()
            sys.exit(0)
        fleet.init_worker()
    else:
        optimizer.minimize(loss)
    exe = fluid.Executor(fluid.CPUPlace())
    trainer = os.environ['TRAINING_ROLE'] == 'TRAINER'
    index = int(os.environ.get('PADDLE_TRAINER_ID', 0))
    if 'PROGRAM' in os.environ and trainer and index == 0:
        with open(os.environ['PROGRAM'], 'wb') as file:
            file.write(fluid.default_main_program().desc.serialize_to_string())
    t = fluid.DistributeTranspiler()
    if 'FLEET' not in os.environ:
        t.transpile(index, pservers=os.environ['PADDLE_PSERVER_ENDPOINTS'],
                    trainers=int(os.environ['PADDLE_TRAINERS_NUM']))
    if not trainer:
        main, startup = t.get_pserver_programs(os.environ['PADDLE_CURRENT_ENDPOINT'])
        exe.run(startup)
        if 'STUCK' in os.environ and os.environ['PADDLE_PSERVER_ID'] == '0':
            import threading
            threading.Thread(target=stop_after_a_checkpoint, daemon=True).start()
        if 'FULL' in os.environ and os.environ['PADDLE_PSERVER_ID'] == '0':
            import resource
            resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 16, 1 << 16))
        exe.run(main)
        sys.exit(0)
    def has_checkpoint():
        try:
            return penstock._penstock.newest_checkpoint(os.environ['PENSTOCK_CHECKPOINT_DIR']) is not None
        except penstock.DataError:  # only a part of the first is written
            return False
    if 'FLEET' in os.environ:
        program = fleet.main_program
        exe.run(fleet.startup_program)
    else:
        program = t.get_trainer_program()
        exe.run(fluid.default_startup_program())
    print('from step', penstock.resume_step(), flush=True)
    if 'LOADS' in os.environ:
        fluid.global_scope().find_var('w').get_tensor().set(np.ones([64, 512], 'float32'), None)
    for step in range(penstock.resume_step(), steps):
        starts = [os.environ['PENSTOCK_RESTART_COUNT'], os.environ['PENSTOCK_ROLE_RESTART_COUNT']]
        if os.environ.get('DIES_AT') == str(step) and index == 1 and starts == ['0', '0']:
            end = time.monotonic() + 60
            while not has_checkpoint():
                assert time.monotonic() < end
                time.sleep(0.01)
            os.kill(os.getpid(), signal.SIGKILL)
        if step >= int(os.environ.get('SLOW_FROM', steps)):
            time.sleep(0.05)
        random = np.random.RandomState(2 * step + index)
        feed = {'x': random.rand(4, 64).astype('float32'), 'y': random.rand(4, 1).astype('float32'),
                'words': random.randint(0, 400, [4, 1])}
        try:
            exe.run(program, feed=feed, fetch_list=[loss])
        except Exception as error:
            print('step', step, 'raised', type(error).__name__, str(error).splitlines()[0], flush=True)
            raise
    if index == 0:
        fluid.io.save_persistables(exe, saved, program)
    exe.close()
"""


def launch(folder, *arguments, options=(), servers=2, trainers=2, **environment):
    """(exit code, what the launcher and all roles said)"""
    counts = {"servers": servers, "workers": trainers}
    return launch_and_read(folder, SCRIPT, *arguments, options=options, wait_s=WAIT_S, **counts, **environment)


def ckpt(folder, *arguments):
    """What `penstock ckpt` says."""
    tool = pathlib.Path(sys.executable).with_name("penstock")
    run = subprocess.run([tool, "ckpt", *map(str, arguments)], cwd=folder, text=True, capture_output=True)
    assert run.returncode == 0, run.stdout + run.stderr
    return run.stdout


def command_of(folder, *arguments, options=(), servers=2, trainers=2):
    (folder / "job.py").write_text(textwrap.dedent(SCRIPT))
    counts = ["--worker_num", trainers, "--server_num", servers]
    launcher = [sys.executable, "-m", "penstock.distributed.launch"]
    return [*launcher, *map(str, [*counts, *options, "job.py", *arguments])]


def start(folder, *arguments, options=(), **environment):
    """A launcher whose job has made a checkpoint of step 5."""
    launcher = subprocess.Popen(
        command_of(folder, *arguments, options=options),
        cwd=folder,
        env={**os.environ, "OMP_NUM_THREADS": "1", **environment},
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    end = time.monotonic() + WAIT_S
    while not list(folder.glob("*/step-5/part-*.json")):
        assert launcher.poll() is None, launcher.communicate()[0]
        assert time.monotonic() < end
        time.sleep(0.02)
    return launcher


def contents(folder):
    """{path: bytes} of the files below the folder, except those that are of one job only."""
    paths = [path for path in sorted(folder.rglob("*")) if path.is_file() and path.name != "__digests__"]
    return {str(path.relative_to(folder)): path.read_bytes() for path in paths}


def values_of(folder, step):
    """[bytes] of all that each pserver held: parameters, tables, state of the optimizer, counters of schedules."""
    return [path.read_bytes() for path in sorted((folder / f"step-{step}").glob("*.values"))]


def checkpoints(folder):
    return ("--checkpoint_dir", folder, "--checkpoint_steps", 5)


@pytest.mark.parametrize(
    "environment", [{}, {"SHARDED": "1"}, {"SHARDED": "1", "LAZY": "1"}], ids=["sliced", "sharded", "lazy"]
)
def test_a_job_that_was_killed_continues_with_the_bytes_of_one_that_was_not(tmp_path, environment):
    code, said = launch(tmp_path, 10, "straight", options=checkpoints("whole"), **environment)
    assert code == 0, said
    assert "from step 0" in said
    assert sorted(path.name for path in (tmp_path / "whole").iterdir() if path.name.startswith("step")) == [
        "step-10",
        "step-5",
    ]
    alone = [*checkpoints("cut"), "--max_role_restart", 0]
    code, said = launch(tmp_path, 10, "none", options=alone, DIES_AT="7", **environment)
    assert code == 1, said
    assert _penstock.newest_checkpoint(str(tmp_path / "cut")) == 5
    # With other initial values: all that matters is in the checkpoint. The rows of a table that is sharded by id
    # begin with values from the seed when they are first used.
    seed = {} if environment else {"SEED": "4"}
    options = [*checkpoints("cut"), "--resume"]
    code, said = launch(tmp_path, 10, "resumed", options=options, **environment, **seed)
    assert code == 0, said
    assert "from step 5" in said
    straight, resumed = contents(tmp_path / "straight"), contents(tmp_path / "resumed")
    assert {"w", "frozen"} <= straight.keys()
    assert straight == resumed
    expected = values_of(tmp_path / "whole", 10)
    assert len(expected) == 2
    assert values_of(tmp_path / "cut", 10) == expected
    assert values_of(tmp_path / "whole", 5) != expected
    assert ckpt(tmp_path, "diff", "whole/step-10", "cut/step-10").startswith("equal: "), "rows of tables, too"
    listed = json.loads((tmp_path / "cut" / "step-10" / "part-0-of-2.json").read_text())["values"]
    assert {"param", "state", "schedule"} <= {value["kind"] for value in listed}


@pytest.mark.parametrize("environment", [{}, {"SHARDED": "1"}], ids=["sliced", "sharded"])
def test_a_job_continues_on_another_number_of_pservers(tmp_path, environment):
    code, said = launch(tmp_path, 15, "straight", options=checkpoints("whole"), **environment)
    assert code == 0, said
    for steps, servers in ((5, 2), (10, 3), (15, 1)):
        resume = ["--resume"] if steps > 5 else []
        seed = {"SEED": str(steps)} if resume and not environment else {}
        options = [*checkpoints("moved"), *resume]
        code, said = launch(tmp_path, steps, "moved end", options=options, servers=servers, **environment, **seed)
        assert code == 0, said
        assert f"from step {steps - 5}" in said
    assert ckpt(tmp_path, "diff", "whole/step-15", "moved/step-15").startswith("equal: ")
    assert [path.name for path in sorted((tmp_path / "moved" / "step-15").glob("*.values"))] == ["part-0-of-1.values"]
    assert contents(tmp_path / "straight") == contents(tmp_path / "moved end")


def test_a_job_of_fleet_has_the_checkpoints_of_the_launcher(tmp_path):
    assert launch(tmp_path, 10, "straight", options=checkpoints("whole"), FLEET="1")[0] == 0
    assert launch(tmp_path, 5, "stopped", options=checkpoints("cut"), FLEET="1")[0] == 0
    code, said = launch(tmp_path, 10, "resumed", options=[*checkpoints("cut"), "--resume"], servers=3, FLEET="1")
    assert code == 0, said
    assert "from step 5" in said
    assert contents(tmp_path / "straight") == contents(tmp_path / "resumed")
    assert ckpt(tmp_path, "diff", "whole/step-10", "cut/step-10").startswith("equal: ")


@pytest.mark.parametrize("environment", [{}, {"SHARDED": "1", "LAZY": "1"}], ids=["sliced", "sharded"])
def test_an_exported_checkpoint_is_what_save_persistables_writes(tmp_path, environment):
    saved = tmp_path / "ckpt" / "saved"  # pservers write their state inside --checkpoint_dir
    code, said = launch(tmp_path, 10, saved, options=checkpoints("ckpt"), PROGRAM="main.pb", **environment)
    assert code == 0, said
    ckpt(tmp_path, "export", "ckpt/step-10", "exported")
    assert {"w", "w_moment1_0", "frozen", "@LR_DECAY_COUNTER@"} <= contents(saved).keys()
    assert contents(tmp_path / "exported") == contents(saved)
    ckpt(tmp_path, "export", "ckpt/step-10", "arrays", "--numpy")
    assert contents(saved)["w"].endswith(np.load(tmp_path / "arrays" / "w.npy").tobytes())
    assert np.load(tmp_path / "arrays" / "@LR_DECAY_COUNTER@.npy").tolist() == [9]
    ckpt(tmp_path, "import", "exported", "imported", "--main", "main.pb", "--step", 10)
    assert ckpt(tmp_path, "diff", "ckpt/step-10", "imported/step-10").startswith("equal: ")
    for folder in ("ckpt", "imported"):
        options = [*checkpoints(folder), "--resume"]
        code, said = launch(tmp_path, 15, f"from {folder}", options=options, **environment)
        assert code == 0, said
        assert "from step 10" in said
    assert ckpt(tmp_path, "diff", "ckpt/step-15", "imported/step-15").startswith("equal: ")


def test_a_job_continues_with_another_number_of_trainers(tmp_path):
    assert launch(tmp_path, 5, "saved", options=checkpoints("ckpt"))[0] == 0
    code, said = launch(tmp_path, 10, "saved", options=[*checkpoints("ckpt"), "--resume"], servers=3, trainers=1)
    assert code == 0, said
    assert "from step 5" in said
    assert [
        json.loads((tmp_path / "ckpt" / f"step-{step}" / f"part-0-of-{servers}.json").read_text())["trainers"]
        for step, servers in ((5, 2), (10, 3))
    ] == [2, 1]


def test_a_job_that_the_launcher_restarts_continues_from_its_checkpoint(tmp_path):
    assert launch(tmp_path, 10, "straight", options=checkpoints("whole"))[0] == 0
    options = [*checkpoints("cut"), "--max_role_restart", 0, "--max_restart", 1]
    code, said = launch(tmp_path, 10, "restarted", options=options, DIES_AT="7")
    assert code == 0, said
    assert "from step 0" in said
    assert "from step 5" in said
    assert contents(tmp_path / "straight") == contents(tmp_path / "restarted")
    assert values_of(tmp_path / "whole", 10) == values_of(tmp_path / "cut", 10)


@pytest.mark.slow
def test_pservers_agree_on_steps_if_there_is_no_interval(tmp_path):
    options = ("--checkpoint_dir", "ckpt", "--checkpoint_steps", "auto")
    code, said = launch(tmp_path, 500, "saved", options=options, SLOW_FROM="0", SHARDED="1")
    assert code == 0, said
    steps = _penstock.checkpoint_steps(str(tmp_path / "ckpt"))
    assert steps, said
    assert ckpt(tmp_path, "verify", "ckpt") == "".join(f"step {step}  good\n" for step in steps)
    code, said = launch(tmp_path, 501, "resumed", options=[*options, "--resume"], SHARDED="1")
    assert code == 0, said
    assert f"from step {steps[-1]}" in said


def test_a_killed_trainer_comes_back_by_itself(tmp_path):
    assert launch(tmp_path, 10, "straight", options=checkpoints("whole"))[0] == 0
    code, said = launch(tmp_path, 10, "returned", options=checkpoints("cut"), DIES_AT="7")
    assert code == 0, said
    assert "from step 0" in said
    assert "from step 7" in said
    assert re.search(r"launch: trainer 1 \(pid \d+\) was killed by SIGKILL, .* and the other roles wait for it", said)
    assert re.search(r"trainer 1 \(pid \d+\) is back \d+\.\d s after its end: it continues with step 7", said)
    assert contents(tmp_path / "straight") == contents(tmp_path / "returned")
    assert values_of(tmp_path / "whole", 10) == values_of(tmp_path / "cut", 10)


def test_checkpoints_of_an_earlier_job_are_neither_used_nor_replaced_unasked(tmp_path):
    assert launch(tmp_path, 5, "saved", options=checkpoints("ckpt"))[0] == 0
    before = contents(tmp_path / "ckpt")
    code, said = launch(tmp_path, 5, "saved", options=checkpoints("ckpt"))
    assert code == 2
    assert "has checkpoints of an earlier job, the last of step 5; continue that job by --resume" in said
    assert "[E-checkpoint-exists]" in said
    assert contents(tmp_path / "ckpt") == before
    (tmp_path / "ckpt" / "step-5" / "part-1-of-2.json").unlink()
    code, said = launch(tmp_path, 10, "saved", options=[*checkpoints("ckpt"), "--resume"])
    assert code == 2
    assert "has no whole checkpoint: in step-5, part 1 of 2 is missing" in said


def test_a_checkpoint_that_cannot_be_written_is_an_error_of_the_next_run(tmp_path):
    code, said = launch(tmp_path, 1000, "none", options=checkpoints("ckpt"), FULL="1")
    assert code == 1, said
    raised = re.findall(r"step (\d+) raised (\w+) (.*)", said)
    assert len(raised) >= 2, said  # of both trainers; the launcher shows what trainer 0 says too
    for step, kind, message in raised:
        assert 5 <= int(step) < 1000
        assert kind == "ProgramError"
        path = tmp_path / "ckpt" / "step-5" / "part-0-of-2.values"
        assert f"checkpoint of step 5: cannot write {path}: File too large (errno {errno.EFBIG})" in message
        assert "[E-file-write]" in message
    assert _penstock.checkpoint_steps(str(tmp_path / "ckpt")) == [5]
    # The other server may have ended before its own part was written.
    other = (tmp_path / "ckpt" / "step-5" / "part-1-of-2.json").exists()
    with pytest.raises(penstock.DataError, match="part 0 of 2 is missing" if other else "in step-5, it has no part"):
        _penstock.newest_checkpoint(str(tmp_path / "ckpt"))


@pytest.mark.parametrize("environment", [{}, {"SHARDED": "1"}], ids=["sliced", "sharded"])
def test_a_job_that_was_asked_to_stop_continues_where_it_stopped(tmp_path, environment):
    options = ("--checkpoint_dir", "cut", "--checkpoint_steps", 5)
    launcher = start(tmp_path, 200, "none", options=options, SLOW_FROM="5", **environment)
    launcher.send_signal(signal.SIGTERM)
    said = launcher.communicate(timeout=WAIT_S)[0]
    assert launcher.returncode == 0, said
    stopped = int(re.search(r"launch: stopped by SIGTERM after step (\d+); its checkpoint is", said)[1])
    assert 5 <= stopped < 200
    assert "--resume continues it" in said
    assert _penstock.newest_checkpoint(str(tmp_path / "cut")) == stopped
    assert not (tmp_path / "cut" / "stop").exists()
    steps = 5 * (stopped // 5) + 10
    code, said = launch(tmp_path, steps, "resumed", options=[*options, "--resume"], **environment)
    assert code == 0, said
    assert f"from step {stopped}" in said
    assert launch(tmp_path, steps, "straight", options=checkpoints("whole"), **environment)[0] == 0
    assert contents(tmp_path / "straight") == contents(tmp_path / "resumed")
    assert values_of(tmp_path / "whole", steps) == values_of(tmp_path / "cut", steps)


@pytest.mark.parametrize("signals", [[signal.SIGINT], [signal.SIGTERM, signal.SIGTERM]], ids=["SIGINT", "twice"])
def test_a_job_ends_at_once_after_ctrl_c_or_a_second_sigterm(tmp_path, signals):
    launcher = start(tmp_path, 1000, "none", options=checkpoints("cut"), SLOW_FROM="5", STUCK="1")
    for number in signals:
        launcher.send_signal(number)
        time.sleep(0.7)
    said = launcher.communicate(timeout=WAIT_S)[0]
    assert launcher.returncode == 128 + signals[-1], said
    assert f"launch: stopped by {signals[-1].name}; all roles were ended" in said


def test_values_loaded_into_a_job_that_continues_are_an_error(tmp_path):
    assert launch(tmp_path, 5, "saved", options=checkpoints("ckpt"))[0] == 0
    code, said = launch(tmp_path, 10, "saved", options=[*checkpoints("ckpt"), "--resume"], LOADS="1")
    assert code == 1
    assert "[E-resume-load]" in said
    assert "if penstock.resume_step() == 0" in said


@pytest.mark.parametrize(
    ("options", "servers", "message"),
    [
        (["--resume"], 2, "--resume needs --checkpoint_dir DIR   [E-checkpoint-folder]"),
        (["--checkpoint_steps", "5"], 2, "--checkpoint_steps needs --checkpoint_dir DIR   [E-checkpoint-folder]"),
        (["--resume", "--checkpoint_dir", "none"], 2, "--resume: none has no checkpoint   [E-checkpoint-whole]"),
        (["--checkpoint_dir", "x", "--checkpoint_steps", "5"], 0, "--checkpoint_steps needs pservers"),
        (["--checkpoint_dir", "x", "--checkpoint_steps", "0"], 2, "--checkpoint_steps"),
    ],
)
def test_the_launcher_refuses_options_that_do_not_fit(tmp_path, options, servers, message):
    code, said = launch(tmp_path, 5, "saved", options=options, servers=servers)
    assert code == 2
    assert message in said
