"""Elastic ranks: real processes that are killed, restarted by the launcher, or left out."""

import os
import re
import subprocess
import sys
import textwrap

import pytest

# Trains for steps; the rank VICTIM kills itself, or raises, before it runs step AT, in as many processes as TIMES says.
TRAIN = """
    import os, signal, sys
    import numpy as np
    import penstock.fluid as fluid
    import penstock.hvd as hvd

    steps, victim, at, times = map(int, sys.argv[1:5])
    fault = sys.argv[5] if len(sys.argv) > 5 else 'is killed'

    def fail_if_due(step):
        if hvd.rank() != victim or step != at: return
        number = sum(name.startswith('failed.') for name in os.listdir('.'))
        if number == times: return
        open('failed.%d' % number, 'w').close()
        if fault == 'is killed': os.kill(os.getpid(), signal.SIGKILL)
        raise ValueError('the data ran out')

    hvd.init()
    main, startup = fluid.Program(), fluid.Program()
    startup.random_seed = 1 + hvd.rank()
    with fluid.program_guard(main, startup), fluid.unique_name.guard():
        x, y = fluid.data('x', [None, 13]), fluid.data('y', [None, 1])
        hidden = fluid.layers.fc(x, 8, act='tanh')
        loss = fluid.layers.mean(fluid.layers.square_error_cost(fluid.layers.fc(hidden, 1), y))
        hvd.DistributedOptimizer(fluid.optimizer.Adam(0.01)).minimize(loss)
    exe = fluid.Executor(fluid.CPUPlace())
    fail_if_due(-1)
    exe.run(startup)
    state = hvd.elastic.ProgramState(main, step=0, seen=np.zeros(2), sizes=[])
    state.register_reset_callbacks([lambda: print('round with', hvd.size(), 'as', hvd.rank())])

    @hvd.elastic.run
    def train(state):
        print('pid', os.getpid(), 'begins at', state.step)
        while state.step < steps:
            fail_if_due(state.step)
            random = np.random.RandomState(1000 * state.step + hvd.rank())
            batch = random.rand(4, 13).astype('float32')
            exe.run(main, feed={'x': batch, 'y': batch.sum(1, keepdims=True)})
            state.seen += hvd.allreduce(np.array([1., hvd.rank()]), op=hvd.Sum)
            state.sizes.append(hvd.size())
            state.step += 1
            state.commit()
        return 'trained'

    print(train(state), state.step, state.seen.tolist(), state.sizes)
    for name in sorted(v.name for v in main.list_vars() if v.persistable):
        print(name, np.array(fluid.global_scope().find_var(name).get_tensor()).tobytes().hex())
"""
WAIT_S = 120
FULL = os.environ | {"OMP_NUM_THREADS": "1"}


def launch(folder, script, *arguments, options=(), ranks=3, environment=None):
    """(exit code, the launcher's error output, {rank: the lines of its log})."""
    (folder / "train.py").write_text(textwrap.dedent(script))
    command = [sys.executable, "-m", "penstock.distributed.launch", "--worker_num", str(ranks), "--quiet"]
    done = subprocess.run(
        [*command, *options, "train.py", *map(str, arguments)],
        cwd=folder,
        env=FULL | (environment or {}),
        capture_output=True,
        text=True,
        timeout=WAIT_S,
    )
    logs = {
        rank: (folder / "mylog" / f"workerlog.{rank}").read_text().splitlines()
        for rank in range(ranks)
        if (folder / "mylog" / f"workerlog.{rank}").exists()
    }
    assert [pid for pid in os.listdir("/proc") if pid.isdigit() and folder_of(pid) == str(folder)] == []
    return done.returncode, done.stderr, logs


def folder_of(pid):
    """The current folder of a process; "" if it has ended."""
    try:
        return os.readlink(f"/proc/{pid}/cwd")
    except OSError:
        return ""


def result(log):
    """The lines of a rank's log that state its result."""
    return log[next(i for i, line in enumerate(log) if line.startswith("trained")) :]


def pids(log):
    return {line.split()[1] for line in log if line.startswith("pid ")}


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    """The result of all ranks without a fault."""
    code, err, logs = launch(tmp_path_factory.mktemp("undisturbed"), TRAIN, 6, 9, 0, 0)
    assert code == 0, err
    results = [result(log) for log in logs.values()]
    assert results == [results[0]] * 3 and results[0][0] == "trained 6 [18.0, 18.0] [3, 3, 3, 3, 3, 3]"
    return results[0]


def skip_without_gloo(logs):
    if any("this build has no Gloo" in line for log in logs.values() for line in log):
        pytest.skip("this build has no Gloo")


@pytest.mark.parametrize(
    "victim, environment",
    [
        (0, {}),
        (1, {}),
        (2, {"PENSTOCK_COLLECTIVE_BACKEND": "gloo"}),
        (0, {"PENSTOCK_COLLECTIVE_BACKEND": "gloo", "PENSTOCK_TRANSPORT": "tcp"}),
    ],
)
def test_a_restarted_rank_continues_from_the_last_commit(tmp_path, undisturbed, victim, environment):
    code, err, logs = launch(
        tmp_path, TRAIN, 6, victim, 3, 1, options=["--max_role_restart", "1"], environment=environment
    )
    skip_without_gloo(logs)
    assert code == 0, err
    assert re.search(rf"trainer {victim} \(pid \d+\) was killed by SIGKILL, .*; it is restarted \(1 of 1\)", err), err
    assert re.search(r"round 1 begins with 3 ranks, [\d.]+ s after the loss", err), err
    for rank, log in logs.items():
        assert result(log) == undisturbed, rank
        assert "begins at 3" in "\n".join(log)
        assert len(pids(log)) == (2 if rank == victim else 1), log  # the others live on


def test_two_losses_of_different_ranks(tmp_path, undisturbed):
    code, err, logs = launch(tmp_path, TRAIN, 6, 1, 4, 2, options=["--max_role_restart", "2"])
    assert code == 0 and "round 2 begins with 3 ranks" in err, err
    assert [result(log) for log in logs.values()] == [undisturbed] * 3


@pytest.mark.parametrize("victim", [0, 2])
@pytest.mark.parametrize("backend", ["shared_memory", "gloo"])
def test_the_others_go_on_without_a_lost_rank(tmp_path, victim, backend):
    code, err, logs = launch(
        tmp_path,
        TRAIN,
        6,
        victim,
        3,
        1,
        options=["--min_workers", "2"],
        environment={"PENSTOCK_COLLECTIVE_BACKEND": backend},
    )
    skip_without_gloo(logs)
    assert code == 0 and "round 1 begins with 2 ranks" in err, err
    left = [log for rank, log in logs.items() if rank != victim]
    for number, log in enumerate(left):
        assert f"round with 2 as {number}" in log, log
        assert result(log)[0] == "trained 6 [15.0, 12.0] [3, 3, 3, 2, 2, 2]"
    assert result(left[0]) == result(left[1])


def test_one_rank_goes_on_alone(tmp_path):
    code, err, logs = launch(tmp_path, TRAIN, 5, 0, 2, 1, options=["--min_workers", "1"], ranks=2)
    assert code == 0 and "round 1 begins with 1 ranks" in err, err
    assert result(logs[1])[0] == "trained 5 [7.0, 2.0] [2, 2, 1, 1, 1]"


# Trains until three ranks have worked together again.
RETURN = """
    import os, signal, time
    import numpy as np
    import penstock.hvd as hvd
    while os.path.exists('failed') and not os.path.exists('went on'): time.sleep(0.05)
    hvd.init()
    state = hvd.elastic.ObjectState(batch=0, sizes=[hvd.size()])

    @hvd.elastic.run
    def train(state):
        while state.batch < 4 or state.sizes[-1] < 3:
            if hvd.rank() == 1 and state.batch == 2 and not os.path.exists('failed'):
                open('failed', 'w').close()
                os.kill(os.getpid(), signal.SIGKILL)
            total = hvd.allreduce(np.ones(1), op=hvd.Sum)[0]
            if total == 2: open('went on', 'w').close()
            if total != state.sizes[-1]: state.sizes.append(int(total))
            state.batch += 1
            time.sleep(0.01)
            state.commit()

    train(state)
    print('sizes', state.sizes, hvd.rank())
"""


def test_a_restarted_rank_joins_the_ranks_that_went_on(tmp_path):
    options = ["--min_workers", "2", "--max_role_restart", "1"]
    code, err, logs = launch(tmp_path, RETURN, options=options)
    assert code == 0, err
    assert "round 1 begins with 2 ranks" in err and "round 2 begins with 3 ranks" in err, err
    assert [log[-1] for log in logs.values()] == [f"sizes [3, 2, 3] {rank}" for rank in range(3)], logs


def test_a_rank_that_fails_again_ends_the_job_with_its_reason(tmp_path):
    code, err, logs = launch(tmp_path, TRAIN, 6, 1, 3, 9, "raises", options=["--max_role_restart", "1"])
    assert code == 1, err
    assert "trainer 1 is lost: --max_role_restart is 1   [E-elastic-limit]" in err, err
    assert "ValueError: the data ran out" in err and "cause: trainer 1 exited with code 1" in err.splitlines()[-1], err
    for rank in (0, 2):
        assert "the job has no further round: trainer 1" in logs[rank][-1] and "[E-elastic-end]" in logs[rank][-1]


def test_too_few_ranks_end_the_job_with_its_reason(tmp_path):
    code, err, _ = launch(tmp_path, TRAIN, 6, 1, 3, 1, options=["--min_workers", "3"])
    assert code == 1 and "2 ranks are left, fewer than 3 (--min_workers)   [E-elastic-limit]" in err, err
    assert err.splitlines()[-1] == "cause: trainer 1 was killed by SIGKILL"


DIES_AS_IT_JOINS = """
    import os, signal
    from penstock._src.hvd import membership

    def join(round, now=membership._join):
        if os.path.exists('failed.0') and not os.path.exists('failed again'):
            open('failed again', 'w').close()
            os.kill(os.getpid(), signal.SIGKILL)
        return now(round)

    if os.path.exists('failed.0'): membership._join = join
"""


def test_a_rank_that_is_lost_again_while_the_others_wait_for_it(tmp_path, undisturbed):
    script = textwrap.dedent(DIES_AS_IT_JOINS) + textwrap.dedent(TRAIN)
    code, err, logs = launch(tmp_path, script, 6, 1, 3, 1, options=["--max_role_restart", "2"])
    assert code == 0 and "round 2 begins with 3 ranks" in err, err
    assert [result(log) for log in logs.values()] == [undisturbed] * 3


def test_a_rank_that_is_lost_before_training_begins(tmp_path, undisturbed):
    code, err, logs = launch(tmp_path, TRAIN, 6, 1, -1, 1, options=["--max_role_restart", "2"])
    assert code == 0, err
    assert [result(log) for log in logs.values()] == [undisturbed] * 3


def test_without_the_options_a_loss_is_an_error(tmp_path):
    code, err, logs = launch(tmp_path, TRAIN, 6, 1, 3, 1)
    assert code == 1 and "cause: trainer 1 was killed by SIGKILL" in err, err
    assert "E-collective-peer" in "\n".join(logs[0])


@pytest.mark.parametrize(
    "options, says",
    [
        (["--min_workers", "4"], "--min_workers is 4, but the job has 3 ranks"),
        (["--min_workers", "1", "--server_num", "1"], "--min_workers is about ranks"),
    ],
)
def test_options_that_a_job_cannot_have_are_refused(tmp_path, options, says):
    code, err, _ = launch(tmp_path, RETURN, options=options)
    assert code == 2 and says in err and "[E-elastic-mode]" in err, err
