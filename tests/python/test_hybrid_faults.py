"""If a process of a job with both exchanges is killed, all others end and report which one is gone, in which step and
operation.

Times are not asserted: in a job that hangs, the time limit of its processes makes the test fail.
"""

import os
import re
import signal
import textwrap

import pytest
from penstock._src.launch.job import free_ports

SCRIPT = textwrap.dedent("""
    import os, sys
    import numpy as np
    import penstock.fluid as fluid

    role, index = sys.argv[1], int(sys.argv[2])
    endpoints = os.environ['ENDPOINTS'].split(',')
    ids, label = fluid.data('ids', [None, 1], 'int64'), fluid.data('label', [None, 1])
    rows = fluid.layers.embedding(ids, [4000, 8], is_sparse=True)
    loss = fluid.layers.mean(fluid.layers.square_error_cost(fluid.layers.fc(rows, 1), label))
    fluid.optimizer.SGD(0.01).minimize(loss)
    config = fluid.DistributeTranspilerConfig()
    config.exchange = {'dense': 'allreduce', 'sparse': 'pserver'}
    exe = fluid.Executor(fluid.CPUPlace())
    t = fluid.DistributeTranspiler(config)
    t.transpile(index if role == 'trainer' else 0, pservers=endpoints, trainers=os.environ['ADDRESSES'])
    if role == 'pserver':
        main, startup = t.get_pserver_programs(endpoints[index])
        exe.run(startup)
        exe.run(main)
        sys.exit(0)
    program = t.get_trainer_program()
    exe.run(fluid.default_startup_program())
    feed = {'ids': np.arange(8).reshape(8, 1) * 500, 'label': np.ones((8, 1), 'float32')}
    for step in range(1, 10**9):
        exe.run(program, feed=feed, fetch_list=[loss])
        if step <= 3: print('step', step, flush=True)
""")
# The operation in which a process waits: an op of the step, or the server loop.
OPERATION = r"all_reduce \d+ \(.*step \d+|op \d+ of block 0:  "


@pytest.mark.parametrize("backend", ["shared_memory", "gloo"])
@pytest.mark.parametrize("victim", ["trainer0", "trainer1", "pserver1"])
def test_all_other_processes_end_and_name_the_lost_process(job, backend, victim):
    before = set(os.listdir("/dev/shm"))
    endpoints = [f"127.0.0.1:{port}" for port in free_ports(2)]
    job.environment.update(
        ENDPOINTS=",".join(endpoints),
        PENSTOCK_COLLECTIVE_BACKEND=backend,
        ADDRESSES=",".join(f"127.0.0.1:{port}" for port in free_ports(3)),
    )
    job.start_all(trainers=3)
    for line in job.processes["trainer2"].stdout:
        if line.split() == ["step", "3"]:
            break
    job.processes[victim].send_signal(signal.SIGKILL)
    ends = job.wait()
    if any("this build has no Gloo" in errors for _, _, errors in ends.values()):
        pytest.skip("this build has no Gloo")
    gone = f"pserver {endpoints[1]} is gone" if victim == "pserver1" else f"(rank|trainer) {victim[-1]} is gone"
    for name in set(ends) - {victim}:
        code, _, errors = ends[name]
        assert code == 1 and re.search(gone, errors), (name, errors)
        assert re.search(r"step \d+", errors) and re.search(OPERATION, errors), (name, errors)
    assert set(os.listdir("/dev/shm")) <= before
