"""Jobs of geo-SGD, of real processes, that are killed or stopped and continue: each delta counts once, and each trainer
goes on with the values that it had."""

import functools
import re
import shutil

import numpy as np
import pytest
import recovery_jobs
from penstock import _penstock

STEPS = 24

# Each step of a trainer has a row of `w` and of `table` of its own, to which it adds -1 and -64: all numbers are exact.
# DIES_AT: before that step of its first process, trainer 1 kills itself; KILLS_AT: it kills a pserver; STOPS_AT: it
# sends SIGTERM to the launcher. Each once there is a whole checkpoint. SLOW: before its second step, trainer 1 waits
# until trainer 0 can go no further.
SCRIPT = """
    import glob
    import numpy as np
    import penstock.fluid as fluid
    from penstock.fluid.communicator import Communicator, DistributedMode

    steps, push_every = int(sys.argv[1]), int(os.environ.get('PUSH_EVERY', 2))
    zero = fluid.initializer.Constant(0.0)
    x, words = fluid.data('x', [None, 2 * steps]), fluid.data('words', [None, 1], 'int64')
    out = fluid.layers.fc(x, 512, param_attr=fluid.ParamAttr('w', initializer=zero), bias_attr=False)
    word = fluid.layers.embedding(words, [2 * steps, 8], is_sparse=True,
                                  param_attr=fluid.ParamAttr('table', initializer=zero))
    loss = fluid.layers.elementwise_add(fluid.layers.mean(out), fluid.layers.mean(word))
    counter = fluid.layers.autoincreased_step_counter(begin=1)
    fluid.optimizer.SGD(512.0).minimize(loss)
    exe, scope = fluid.Executor(fluid.CPUPlace()), fluid.global_scope()
    trainer = os.environ['TRAINING_ROLE'] == 'TRAINER'
    index = int(os.environ.get('PADDLE_TRAINER_ID' if trainer else 'PADDLE_PSERVER_ID', 0))
    config = fluid.DistributeTranspilerConfig()
    config.geo_sgd_mode, config.geo_sgd_need_push_nums = True, push_every
    t = fluid.transpiler.GeoSgdTranspiler(config)
    t.transpile(index if trainer else 0, pservers=os.environ['PADDLE_PSERVER_ENDPOINTS'], trainers=2)
    if not trainer:
        main, startup = t.get_pserver_programs(os.environ['PADDLE_CURRENT_ENDPOINT'])
        exe.run(startup)
        with open(f'pserver.{index}', 'w') as file:
            file.write(str(os.getpid()))
        exe.run(main)
        saved = {}
        for var in main.list_vars():
            held = scope.find_var(var.name)
            if var.persistable and var.name.split('.')[0] in ('w', 'table') and held is not None:
                saved[var.name] = np.array(held.get_tensor())
        np.savez(f'end.{index}', **saved)
        sys.exit(0)
    program = t.get_trainer_program()
    exe.run(fluid.default_startup_program())
    communicator = Communicator(program, DistributedMode.GEO, None)
    communicator.start()
    first = penstock.resume_step()
    print('trainer', index, 'begins with step', first, flush=True)
    told = False
    for step in range(first, steps):
        if step == every * push_every and 'SLOW' not in os.environ:  # the next exchange adds the trainer's part
            wait_for(lambda: has_part(0, every) and has_part(1, every))
        if index == 1 and first == 0 and os.environ.get('DIES_AT') == str(step):
            wait_for(has_checkpoint)
            os.kill(os.getpid(), signal.SIGKILL)
        if index == 1 and first == 0 and os.environ.get('KILLS_AT') == str(step):
            wait_for(has_checkpoint)
            os.kill(int(open('pserver.1').read()), signal.SIGKILL)
        if index == 1 and first == 0 and os.environ.get('STOPS_AT') == str(step):
            wait_for(has_checkpoint)
            os.kill(os.getppid(), signal.SIGTERM)
            told = True
        if 'STOPS_AT' in os.environ and first == 0 and step > int(os.environ['STOPS_AT']):
            time.sleep(0.2)
        if 'SLOW' in os.environ and index == 1 and step == 1:
            wait_for(lambda: any('waits for checkpoint' in open(log).read() for log in glob.glob('mylog/*log.0')))
            time.sleep(1)
            print('trainer 0 is in step', open('at').read(), flush=True)
        if index == 0:
            with open('at.new', 'w') as file:
                file.write(str(step))
            os.rename('at.new', 'at')
        row = 2 * step + index
        feed = {'x': np.eye(2 * steps, dtype='float32')[[row]], 'words': np.array([[row]], 'int64')}
        count = exe.run(program, feed=feed, fetch_list=[counter])[0]
        assert int(np.ravel(count)[0]) == step + 1, (count, step)
    communicator.stop()
    w, table = (np.array(scope.find_var(name).get_tensor()) for name in ('w', 'table'))
    np.testing.assert_array_equal(w[index::2], np.full([steps, 512], -1, 'float32'))
    np.testing.assert_array_equal(table[index::2], np.full([steps, 8], -64, 'float32'))
    exe.close()
"""

launch = functools.partial(recovery_jobs.launch, SCRIPT, STEPS)


def expect_each_delta_once(folder, push_every=2):
    """The pservers have ended with all deltas of both trainers."""
    ends = [np.load(folder / f"end.{server}.npz") for server in range(2)]
    pieces = {name: end[name] for end in ends for name in end.files}
    w, table = (
        np.concatenate([pieces[name] for name in sorted(pieces) if name.split(".")[0] == param])
        for param in ("w", "table")
    )
    # Each exchange sends half of what a trainer has not sent yet; of a table, only in the exchange of a touched row.
    exchanges = STEPS // push_every - np.arange(2 * STEPS) // 2 // push_every
    np.testing.assert_array_equal(w, np.repeat((2.0**-exchanges - 1)[:, None], 512, 1).astype("float32"))
    np.testing.assert_array_equal(table, np.full([2 * STEPS, 8], -32, "float32"))


def expect_it_continues(folder, **environment):
    code, said = launch(folder, "--resume", "--max_role_restart", 0, every=2, **environment)
    assert code == 0, said
    begins = {trainer: int(step) for trainer, step in re.findall(r"trainer (\d) begins with step (\d+)", said)}
    assert begins.keys() == {"0", "1"}, said
    assert all(4 < step <= STEPS for step in begins.values()), begins
    expect_each_delta_once(folder, int(environment.get("PUSH_EVERY", 2)))


@pytest.mark.parametrize("push_every", [1, 2])
def test_a_job_that_was_killed_continues_with_each_delta_once(tmp_path, push_every):
    every = {"PUSH_EVERY": str(push_every)}
    code, said = launch(tmp_path, "--max_role_restart", 0, every=2 if push_every == 2 else 4, DIES_AT="10", **every)
    assert code == 1, said
    assert _penstock.newest_checkpoint(str(tmp_path / "ckpt")) is not None
    expect_it_continues(tmp_path, **every)


@pytest.mark.parametrize("kills", [{"DIES_AT": "10"}, {"KILLS_AT": "10"}], ids=["trainer", "pserver"])
def test_a_killed_process_starts_the_whole_job_again(tmp_path, kills):
    code, said = launch(tmp_path, "--on_trainer_loss", "abort", "--max_restart", 1, every=2, **kills)
    assert code == 0, said
    begins = {(trainer, int(step)) for trainer, step in re.findall(r"trainer (\d) begins with step (\d+)", said)}
    assert {trainer for trainer, step in begins if step > 4} == {"0", "1"}, said
    expect_each_delta_once(tmp_path)


def test_a_job_that_is_stopped_continues_from_its_next_checkpoint(tmp_path):
    code, said = launch(tmp_path, "--max_role_restart", 0, every=2, STOPS_AT="8")
    assert code == 0, said
    assert re.search(r"after step \d+; its checkpoint is .*; the same command with --resume continues it", said), said
    assert not list(tmp_path.glob("end.*")), "the job had ended by itself"
    expect_it_continues(tmp_path)


def test_a_trainer_that_is_far_ahead_waits_for_the_next_checkpoint(tmp_path):
    # Each delta has 98 KB: eleven fill its memory, from exchange 2 on, at which the checkpoint is due.
    code, said = launch(tmp_path, "--max_role_restart", 0, every=2, PUSH_EVERY="1", SLOW="1", PENSTOCK_RETENTION_MB="1")
    assert code == 0, said
    assert "trainer 0 waits for checkpoint 2 after exchange 13" in said, said
    assert "trainer 0 is in step 12\n" in said, said
    expect_each_delta_once(tmp_path, push_every=1)


def test_a_checkpoint_without_a_trainers_part_is_not_whole(tmp_path):
    code, said = launch(tmp_path, "--max_role_restart", 0, every=2, DIES_AT="10")
    assert code == 1, said
    ckpt = tmp_path / "ckpt"
    newest = f"step-{_penstock.newest_checkpoint(str(ckpt))}"
    for other in ckpt.glob("step-*"):  # an older one, or the parts of one that was being made
        if other.name != newest:
            shutil.rmtree(other)
    (ckpt / newest / "trainer-1-of-2.json").unlink()
    with pytest.raises(_penstock.DataError, match="trainer 1 of 2 is missing"):
        _penstock.newest_checkpoint(str(ckpt))


def test_other_recovery_of_geo_jobs_is_refused_by_name(tmp_path):
    code, said = launch(tmp_path)
    assert code == 1
    assert "[E-trainer-loss-mode]" in said
    code, said = launch(tmp_path, "--max_role_restart", 0, every="auto")
    assert code == 1
    assert "in geo training, trainers add their parts at an interval of exchanges" in said
    assert "[E-checkpoint-mode]" in said


def test_another_number_of_pservers_is_refused(tmp_path):
    assert launch(tmp_path, "--max_role_restart", 0, every=2, DIES_AT="10")[0] == 1
    code, said = launch(tmp_path, "--resume", "--max_role_restart", 0, "--server_num", 3)
    assert code == 1
    assert "[E-checkpoint-differs]" in said
