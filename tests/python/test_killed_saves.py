"""A pserver that is killed at each of the system calls by which it saves: a checkpoint that it has reported, or a newer
one, is whole every time, and the job continues from it."""

import itertools
import os
import pathlib
import re
import subprocess
import sys
import textwrap

import penstock
import pytest
from penstock import _penstock

WAIT_S = 120
LIBRARY = pathlib.Path(_penstock.__file__).resolve().parents[2] / "tests/support/libkill_at_call.so"
STEPS = 6

# Six steps, each of which adds a row to a table. A checkpoint is made of every second one, and only the last is kept.
SCRIPT = """
    import os, sys
    import numpy as np
    import penstock
    import penstock.fluid as fluid

    fluid.default_main_program().random_seed = fluid.default_startup_program().random_seed = 3
    ids = fluid.data('ids', [None, 1], 'int64')
    word = fluid.layers.embedding(ids, [100, 4], is_sparse=True, is_distributed=True, param_attr='table')
    loss = fluid.layers.mean(fluid.layers.fc(word, 1))
    fluid.optimizer.Adagrad(0.1).minimize(loss)
    t = fluid.DistributeTranspiler()
    t.transpile(0, pservers=os.environ['PADDLE_PSERVER_ENDPOINTS'], trainers=1)
    exe = fluid.Executor(fluid.CPUPlace())
    if os.environ['TRAINING_ROLE'] == 'PSERVER':
        main, startup = t.get_pserver_programs(os.environ['PADDLE_CURRENT_ENDPOINT'])
        exe.run(startup)
        exe.run(main)
        sys.exit(0)
    program = t.get_trainer_program()
    exe.run(fluid.default_startup_program())
    print('from step', penstock.resume_step(), flush=True)
    for step in range(penstock.resume_step(), int(sys.argv[1])):
        listed = list(range(20)) if step == 0 else [0, 20 + step]
        exe.run(program, feed={'ids': np.array(listed).reshape(-1, 1)}, fetch_list=[loss])
    exe.close()
"""


def launch(folder, *options, **of_pserver):
    """(exit code, what all have said)"""
    (folder / "job.py").write_text(textwrap.dedent(SCRIPT))
    command = [sys.executable, "-m", "penstock.distributed.launch", "--server_num", "1", "--worker_num", "1"]
    command += ["--checkpoint_steps", "2", "--keep", "1", "--max_role_restart", "0", "--on_trainer_loss", "abort"]
    command += [part for name, value in of_pserver.items() for part in ("--env", f"pserver:{name}={value}")]
    command += [*options, "job.py", str(STEPS)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=WAIT_S)
    return done.returncode, done.stdout + done.stderr


def equal(folder, one, other):
    tool = pathlib.Path(sys.executable).with_name("penstock")
    run = subprocess.run([tool, "ckpt", "diff", one, other], cwd=folder, text=True, capture_output=True)
    return run.stdout.startswith("equal: "), run.stdout + run.stderr


def killed_at(folder, call):
    """Whether the process was killed; else it has made fewer calls."""
    saves = folder / f"killed-{call}"
    code, said = launch(
        folder, "--checkpoint_dir", str(saves), LD_PRELOAD=LIBRARY, KILL_FOLDER=f"{saves}/step-", KILL_AT=call
    )
    if code == 0:
        return False
    assert "was killed by SIGKILL" in said, said
    reported = [int(step) for step in re.findall(r"its part of \S+/step-(\d+) is written", said)]
    try:
        newest = _penstock.newest_checkpoint(str(saves))
    except penstock.DataError:  # a part of the first one
        newest = None
    assert (newest or 0) >= max(reported, default=0), said
    if newest is None:
        return True
    same, how = equal(folder, f"killed-{call}/step-{newest}", f"whole/step-{newest}")
    assert same, how
    code, said = launch(folder, "--checkpoint_dir", str(saves), "--resume")
    assert code == 0, said
    assert f"from step {newest}" in said
    same, how = equal(folder, f"killed-{call}/step-{STEPS}", f"whole/step-{STEPS}")
    assert same, how
    return True


@pytest.mark.slow
@pytest.mark.skipif(not LIBRARY.exists(), reason="kill_at_call is not built")
def test_a_save_that_is_killed_leaves_the_previous_or_the_new_checkpoint(tmp_path):
    code, said = launch(tmp_path, "--checkpoint_dir", str(tmp_path / "whole"), "--keep", "9")
    assert code == 0, said
    calls = next(call for call in itertools.count(1) if not killed_at(tmp_path, call))
    assert calls > 25, "three saves, the last with a removal"
