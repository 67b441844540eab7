"""Asynchronous jobs of real processes of which pservers, or all processes, are killed: each gradient counts once."""

import functools
import os
import pickle
import re
import subprocess
import sys

import numpy as np
import pytest
import recovery_jobs
from penstock import _penstock

STEPS = 12

# Each step of a trainer has a row of `w` and of `table` of its own, to which it adds -1 and -64: all numbers are exact.
# KILLS, "step:server,...": trainer 0 kills that pserver before that step of its own. DIES_AT: trainer 1 kills itself
# before that step of its first process, once there is a whole checkpoint. MODE: HALF_ASYNC and ASYNC send by the
# communicator. SHARDED: the table is sharded by id. READS: when both trainers have ended their steps, they
# save what the pservers have, twice: what a trainer gets has its own gradients, and the second time those of both.
SCRIPT = """
    import numpy as np
    import penstock.fluid as fluid

    steps, mode = int(sys.argv[1]), os.environ.get('MODE')
    zero = fluid.initializer.Constant(0.0)
    x, words = fluid.data('x', [None, 2 * steps]), fluid.data('words', [None, 1], 'int64')
    out = fluid.layers.fc(x, 512, param_attr=fluid.ParamAttr('w', initializer=zero), bias_attr=False)
    word = fluid.layers.embedding(words, [2 * steps, 8], is_sparse='DELAY' not in os.environ,
                                  is_distributed='SHARDED' in os.environ,
                                  param_attr=fluid.ParamAttr('table', initializer=zero))
    loss = fluid.layers.elementwise_add(fluid.layers.mean(out), fluid.layers.mean(word))
    fluid.optimizer.SGD(512.0).minimize(loss)
    exe = fluid.Executor(fluid.CPUPlace())
    trainer = os.environ['TRAINING_ROLE'] == 'TRAINER'
    index = int(os.environ.get('PADDLE_TRAINER_ID' if trainer else 'PADDLE_PSERVER_ID', 0))
    config = fluid.DistributeTranspilerConfig()
    config.enable_dc_asgd = 'DELAY' in os.environ
    if mode:
        config.sync_mode, config.runtime_split_send_recv, config.half_async = False, True, mode == 'HALF_ASYNC'
    t = fluid.DistributeTranspiler(config)
    t.transpile(index if trainer else 0, pservers=os.environ['PADDLE_PSERVER_ENDPOINTS'], trainers=2, sync_mode=False)
    attempt = os.environ['PENSTOCK_RESTART_COUNT']
    if not trainer:
        main, startup = t.get_pserver_programs(os.environ['PADDLE_CURRENT_ENDPOINT'])
        exe.run(startup)
        name = f'pserver.{index}.{attempt}.{os.environ["PENSTOCK_ROLE_RESTART_COUNT"]}'
        with open(name + '.new', 'w') as file:
            file.write(str(os.getpid()))
        os.rename(name + '.new', name)
        exe.run(main)
        sys.exit(0)
    kills, starts = {}, {}
    for kill in os.environ.get('KILLS', '').split(',') if index == 0 else []:
        if kill:
            kills.setdefault(int(kill.split(':')[0]), []).append(int(kill.split(':')[1]))
    program = t.get_trainer_program()
    exe.run(fluid.default_startup_program())
    if mode:
        communicator = fluid.communicator.Communicator(
            program, getattr(fluid.communicator.DistributedMode, mode), None,
            {'communicator_min_send_grad_num_before_recv': '0', 'communicator_independent_recv_thread': '0',
             'communicator_max_merge_var_num': '1'})
        communicator.start()
    first = penstock.resume_step()
    print('trainer', index, 'begins with step', first, flush=True)
    for step in range(first, steps):
        first_process = os.environ['PENSTOCK_ROLE_RESTART_COUNT'] == '0'
        if index == 1 and os.environ.get('DIES_AT') == str(step) and first_process:
            wait_for(has_checkpoint)
            os.kill(os.getpid(), signal.SIGKILL)
        for server in kills.get(step, []):
            start = starts[server] = starts.get(server, -1) + 1
            wait_for(lambda: os.path.exists(f'pserver.{server}.0.{start}'))
            if step > every:
                wait_for(lambda: has_part(server, every) or has_checkpoint())
            os.kill(int(open(f'pserver.{server}.0.{start}').read()), signal.SIGKILL)
        row = 2 * step + index
        feed = {'x': np.eye(2 * steps, dtype='float32')[[row]], 'words': np.array([[row]], 'int64')}
        exe.run(program, feed=feed, fetch_list=[loss])
    if mode:
        communicator.stop()

    def meet(name):
        open(f'{name}.{index}', 'w').close()
        wait_for(lambda: all(os.path.exists(f'{name}.{one}') for one in range(2)))

    if 'READS' in os.environ:
        for name in ('ended', 'received'):
            meet(name)
            fluid.save(program, f'last.{index}')
    exe.close()
"""


launch = functools.partial(recovery_jobs.launch, SCRIPT, STEPS)


def expect_each_gradient_once(folder):
    """The last checkpoint has all steps of both trainers."""
    tool = os.path.join(os.path.dirname(sys.executable), "penstock")
    command = [tool, "ckpt", "export", f"ckpt/step-{STEPS}", "arrays", "--numpy"]
    run = subprocess.run(command, cwd=folder, text=True, capture_output=True)
    assert run.returncode == 0, run.stdout + run.stderr
    saved = sorted((folder / "arrays").iterdir())
    table = next(path for path in saved if path.name.startswith("table") and "ids" not in path.name)
    expect_all_steps(np.load(folder / "arrays" / "w.npy"), np.load(table))


def expect_all_steps(w, table):
    np.testing.assert_array_equal(w, np.full([2 * STEPS, 512], -1, "float32"))
    np.testing.assert_array_equal(table, np.full([2 * STEPS, 8], -64, "float32"))


# A communicator in mode ASYNC sends each variable by itself, so a trainer may need more steps than the script has, and
# a checkpoint of the script's last step may lack a gradient.
MODES = [{}, {"SHARDED": "1"}, {"MODE": "HALF_ASYNC"}, {"MODE": "ASYNC", "READS": "1"}]
NAMES = ["async", "sharded", "half_async", "communicator"]


@pytest.mark.parametrize("environment", MODES, ids=NAMES)
def test_a_killed_pserver_comes_back_with_each_gradient_once(tmp_path, environment):
    code, said = launch(tmp_path, KILLS="2:0,7:1", **environment)
    assert code == 0, said
    if "READS" in environment:
        last = pickle.loads((tmp_path / "last.0.pdparams").read_bytes())
        expect_all_steps(last["w"], last["table"])
    else:
        expect_each_gradient_once(tmp_path)
    back = re.findall(r"launch: pserver \d \(pid \d+\) is back \d+\.\d s after its end: (.*)", said)
    assert len(back) == 2, said
    assert all(line.endswith("lost 0, repeated 0; no other process stepped back") for line in back), back


@pytest.mark.parametrize("environment", MODES[:3], ids=NAMES[:3])  # by the communicator: continue_a_job.md
def test_a_job_that_was_killed_continues_with_each_gradient_once(tmp_path, environment):
    code, said = launch(tmp_path, "--max_role_restart", 0, DIES_AT="8", **environment)
    assert code == 1, said
    assert _penstock.newest_checkpoint(str(tmp_path / "ckpt")) in (4, 8)
    code, said = launch(tmp_path, "--resume", **environment)
    assert code == 0, said
    begins = dict(re.findall(r"trainer (\d) begins with step (\d+)", said))
    assert begins.keys() == {"0", "1"}, said
    assert all(4 <= int(step) <= STEPS for step in begins.values()), begins
    expect_each_gradient_once(tmp_path)


@pytest.mark.parametrize("environment", MODES[:3], ids=NAMES[:3])
def test_a_killed_trainer_comes_back_with_each_gradient_once(tmp_path, environment):
    code, said = launch(tmp_path, DIES_AT="8", **environment)
    assert code == 0, said
    assert len(re.findall(r"trainer 1 begins with step \d+", said)) >= 1, said
    assert "launch: trainer 1 (pid" in said, said
    expect_each_gradient_once(tmp_path)


def test_another_number_of_pservers_is_refused(tmp_path):
    assert launch(tmp_path, "--max_role_restart", 0, DIES_AT="8")[0] == 1
    code, said = launch(tmp_path, "--resume", "--server_num", 3)
    assert code == 1
    assert "Asynchronous training continues with as many pservers and trainers" in said
    assert "[E-checkpoint-differs]" in said


def test_what_a_pserver_keeps_of_reads_is_in_no_checkpoint(tmp_path):
    code, said = launch(tmp_path, DELAY="1")
    assert code == 1
    assert "makes no checkpoints: delay compensation keeps what each trainer has read" in said
    assert "[E-checkpoint-mode]" in said
