"""Failures of a job of ranks: one is killed, stopped, raises, or does something else than the others. Real processes.

Times are not asserted: in a job that hangs, the time limit of its processes makes the test fail.
"""

import os
import re
import signal
import subprocess
import sys

import pytest
from rank_processes import Ranks

# Trains for the given number of steps. `fault` is what rank 1 does instead of its third step.
TRAIN = """
    import os, signal, sys
    import numpy as np
    import penstock.fluid as fluid
    import penstock.hvd as hvd
    steps, fault = int(sys.argv[1]), sys.argv[2]
    hvd.init()

    def program_of(width):
        main, startup = fluid.Program(), fluid.Program()
        with fluid.program_guard(main, startup), fluid.unique_name.guard():
            x, y = fluid.data('x', [None, 13]), fluid.data('y', [None, 1])
            loss = fluid.layers.mean(fluid.layers.square_error_cost(fluid.layers.fc(x, width), y))
            hvd.DistributedOptimizer(fluid.optimizer.SGD(0.01)).minimize(loss)
        return main, startup, loss

    exe = fluid.Executor(fluid.CPUPlace())
    main, startup, loss = program_of(1)
    exe.run(startup)
    feed = {'x': np.ones((4, 13), 'float32'), 'y': np.ones((4, 1), 'float32')}
    for step in range(1, steps + 1):
        if hvd.rank() == 1 and step == 3:
            if fault == 'raises': raise ValueError('the data ran out')
            if fault == 'exits': sys.exit(7)
            if fault == 'leaves': hvd.shutdown(); sys.exit(0)
            if fault == 'is killed': os.kill(os.getpid(), signal.SIGKILL)
            if fault == 'reduces an array': hvd.allreduce(np.ones(3), name='accuracy')
            if fault == 'runs another program':
                with fluid.scope_guard(fluid.Scope()):
                    other, startup, _ = program_of(2)
                    exe.run(startup)
        exe.run(main, feed=feed, fetch_list=[loss])
        if step <= 3: print('step', step)
    print('trained')
"""
WAIT_S = 90  # for what takes some seconds
LINE = r"rank\.py:\d+ in "


def shared_memory():
    return set(os.listdir("/dev/shm"))


def until_step(job, step):
    for process in job.processes:
        for line in process.stdout:
            if line.split() == ["step", str(step)]:
                break


@pytest.mark.parametrize("backend", ["shared_memory", "gloo"])
@pytest.mark.parametrize("victim", [0, 1])
def test_other_ranks_end_and_report_a_killed_rank(tmp_path, backend, victim):
    before = shared_memory()
    with Ranks(tmp_path, TRAIN, 3, 10**9, "", environment={"PENSTOCK_COLLECTIVE_BACKEND": backend}) as job:
        until_step(job, 3)
        job.processes[victim].send_signal(signal.SIGKILL)
        ends = job.ends(WAIT_S)
    if any("this build has no Gloo" in err for _, _, err in ends):
        pytest.skip("this build has no Gloo")
    where = (
        r"all_reduce \d+ \(sum of \d+ f32, \d+ bytes; "
        + r"(bucket of \d+ tensors, first )?fc_0\.[wb]_0@GRAD, step \d+, "
        + LINE
    )
    for rank in {0, 1, 2} - {victim}:
        code, _, err = ends[rank]
        assert code == 1 and re.search(f"rank {victim} .*E-collective-peer", err) and re.search(where, err), err
    assert shared_memory() <= before


@pytest.mark.parametrize(
    "fault, code, cause",
    [
        ("raises", 1, "rank 1 has left the group: ValueError: the data ran out"),
        ("exits", 7, "rank 1 has left the group: its process ended with exit code 7"),
        ("leaves", 0, "rank 1 has left the group"),
    ],
)
def test_all_other_ranks_report_the_error_of_one(tmp_path, fault, code, cause):
    with Ranks(tmp_path, TRAIN, 3, 10**9, fault) as job:
        ends = job.ends(WAIT_S)
    assert ends[1][0] == code, ends[1][2]
    for rank in (0, 2):
        assert ends[rank][0] == 1 and cause in ends[rank][2], ends[rank][2]
        assert re.search(r"@GRAD, step 3, " + LINE, ends[rank][2]), ends[rank][2]


@pytest.mark.parametrize(
    "fault, own, others",
    [
        ("reduces an array", "accuracy, " + LINE, r"fc_0\.b_0@GRAD, step 3, " + LINE),
        ("runs another program", r"begins another program with fc_0\.\w+, step 1", r"fc_0\.b_0@GRAD, step 3, " + LINE),
    ],
)
def test_a_mismatched_rank_is_reported_with_both_lines(tmp_path, fault, own, others):
    with Ranks(tmp_path, TRAIN, 3, 10**9, fault) as job:
        ends = job.ends(WAIT_S)
    for code, _, err in ends:
        assert code == 1 and "E-collective-mismatch" in err, err
        assert re.search(r"rank 0: all_reduce .*" + others, err), err
        assert re.search(r"rank 1: \w+ .*" + own, err), err


@pytest.mark.parametrize("backend", ["shared_memory", "gloo"])
def test_a_stopped_rank_is_reported_and_can_continue(tmp_path, backend):
    with Ranks(
        tmp_path, TRAIN, 2, 400, "", environment={"PENSTOCK_REPORT_AFTER": "1", "PENSTOCK_COLLECTIVE_BACKEND": backend}
    ) as job:
        until_step(job, 3)
        job.processes[1].send_signal(signal.SIGSTOP)
        try:
            for line in job.processes[0].stderr:
                if "rank 1" in line and "waiting" in line:
                    break
        finally:
            job.processes[1].send_signal(signal.SIGCONT)
        assert re.search(r"all_reduce \d+ .*@GRAD, step \d+", line), line
        assert all(out.endswith("trained\n") for out in job.end_well())


DIFFERENT = """
    import numpy as np
    import penstock.fluid as fluid
    import penstock.hvd as hvd
    hvd.init()
    x = fluid.data('x', [None, 13])
    loss = fluid.layers.mean(fluid.layers.fc(x, 1 + hvd.rank()))
    hvd.DistributedOptimizer(fluid.optimizer.SGD(0.01)).minimize(loss)
    fluid.Executor(fluid.CPUPlace()).run(fluid.default_startup_program())
"""


def test_ranks_with_different_programs_report_the_difference(tmp_path):
    with Ranks(tmp_path, DIFFERENT, 2) as job:
        for code, _, err in job.ends(WAIT_S):
            assert code == 1 and "E-rendezvous-contract" in err and "fc_0.w_0 f32[13, 2]" in err, err


APART = """
    import os
    import penstock.fluid as fluid
    rank, trainers = int(os.environ['PADDLE_TRAINER_ID']), os.environ['PADDLE_TRAINER_ENDPOINTS']

    y = fluid.data('y', [None, 2])
    fluid.optimizer.SGD(0.1).minimize(fluid.layers.mean(fluid.layers.fc(y, 1)))
    config = fluid.DistributeTranspilerConfig()
    config.mode, config.collective_mode, config.nccl_comm_num = 'collective', 'grad_allreduce', 2
    fluid.DistributeTranspiler(config).transpile(rank, trainers=trainers, current_endpoint=trainers.split(',')[rank])
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(fluid.default_startup_program())

    apart = fluid.Program()
    with fluid.program_guard(apart):
        x = fluid.layers.fill_constant([3], 'float32', 1.0)
        apart.global_block().append_op(type='c_allreduce_sum', inputs={'X': x}, outputs={'Out': x},
                                       attrs={'ring_id': rank % 2, 'use_calc_stream': True})
    exe.run(apart)
"""


@pytest.mark.parametrize("backend", ["shared_memory", "gloo"])
def test_a_deadlock_across_rings_is_ended_and_reported(tmp_path, backend):
    environment = {"PENSTOCK_REPORT_AFTER": "1", "PENSTOCK_COLLECTIVE_BACKEND": backend}
    with Ranks(tmp_path, APART, 3, environment=environment) as job:
        ends = job.ends(WAIT_S)
    if any("this build has no Gloo" in err for _, _, err in ends):
        pytest.skip("this build has no Gloo")
    for code, _, err in ends:
        assert code == 1 and "all ranks wait for each other, and no operation has them all" in err, err
        what = rf"barrier \d+ \(begins another program with fill_constant_0.tmp_0, step 1, {LINE}<module>\)"
        assert re.search(f"rank 0 and 1 more: {what} on ring 0; rank 1: {what} on ring 1", err), err


def test_the_launcher_names_the_failed_rank(tmp_path):
    (tmp_path / "train.py").write_text("\n".join(line[4:] for line in TRAIN.splitlines()))
    command = [
        sys.executable,
        "-m",
        "penstock.distributed.launch",
        "--worker_num",
        "3",
        "train.py",
        "1000000000",
        "is killed",
    ]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=WAIT_S)
    assert done.returncode == 1
    assert re.search(r"launch: trainer 1 \(pid \d+\) was killed by SIGKILL", done.stderr), done.stderr
