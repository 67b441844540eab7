"""Key-value stores in jobs of several processes: one script is every role, under the launcher and with MXNet's
variables; ranks without pservers; and how jobs end."""

import re
import subprocess
import sys
import textwrap

import pytest
from dmlc_processes import Dmlc
from rank_processes import Ranks

WAIT_S = 120
RANKS = """
    import numpy as np
    from penstock import kv as keyed
    kv = keyed.create('{kind}')
    assert kv.num_workers == 2
    kv.init('w', np.full(3, 5.0 + kv.rank))
    kv.init('t', keyed.RowSparse([1], np.full((1, 2), 1.0 + kv.rank), (4, 2)))
    first = kv.pull('w')
    kv.push('w', [np.full(3, 1.0 + kv.rank)] * 2)
    total = kv.pull('w')
    kv.set_optimizer(keyed.optimizer.create('sgd', learning_rate=0.5))
    kv.push('t', keyed.RowSparse([kv.rank, 3], np.ones((2, 2)), (4, 2)))
    rows = kv.row_sparse_pull('t', row_ids=range(4)).values[:, 0]
    kv.barrier()
    print(first.tolist(), total.tolist(), rows.tolist(), kv.rounds('w'))
"""


@pytest.mark.parametrize("kind", ["dist_sync_mpi", "horovod", "nccl"])
def test_stores_of_ranks_give_each_the_sum(tmp_path, kind):
    with Ranks(tmp_path, RANKS.format(kind=kind), 2) as ranks:
        assert set(ranks.end_well()) == {"[5.0, 5.0, 5.0] [6.0, 6.0, 6.0] [-0.5, 0.5, 0.0, -1.0] 1\n"}


SCRIPT = """
    import os, sys
    import numpy as np
    from penstock import kv as keyed
    kv = keyed.create('dist_sync')
    assert kv.num_workers == 2
    names = ['b', 'a'] if kv.rank else ['a', 'b']
    for name in names:                                # in any order: keys are names
        kv.init(name, np.full(4, ord(name) + kv.rank, 'float32'))
    kv.set_optimizer(keyed.optimizer.create('sgd', learning_rate=1.0))
    kv.barrier()
    for step in range(3):
        if os.environ.get('RAISES') == str(kv.rank) and step == 1:
            raise ValueError('the data ran out')
        if os.environ.get('EXITS') == str(kv.rank) and step == 1:
            sys.exit(3)
        if os.environ.get('DIES') == str(kv.rank) and step == 1:
            os.kill(os.getpid(), 9)
        kv.push(names, [np.full(4, 1.0 + kv.rank, 'float32')] * 2)
        values = kv.pull(['a', 'b'])
    print(kv.rank, values[0][0], values[1][0], kv.rounds('a'))
"""
EXPECTED = ["0 88.0 89.0 3", "1 88.0 89.0 3"]  # 97 and 98, less 3 a step


def test_one_script_is_every_role_under_the_launcher(tmp_path):
    script = tmp_path / "job.py"
    script.write_text(textwrap.dedent(SCRIPT))
    command = [sys.executable, "-m", "penstock.distributed.launch", "--server_num", "2", "--worker_num", "2"]
    command += ["--log_dir", str(tmp_path / "logs"), str(script)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=WAIT_S, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    logs = "\n".join(path.read_text() for path in (tmp_path / "logs").rglob("*"))
    for line in EXPECTED:
        assert line in logs + done.stdout


def test_one_script_is_every_role_with_mxnets_variables(tmp_path):
    with Dmlc(tmp_path, SCRIPT, workers=2, servers=2) as job:
        ends = job.ends()
    assert [end[1] for end in ends] == [0] * 5, "\n".join(end[3] for end in ends)
    assert [end[2].strip() for end in ends if end[0] == "worker"] == EXPECTED


@pytest.mark.parametrize("level", [1, 2])
def test_ps_verbose_logs_the_messages_of_both_sides(tmp_path, level):
    with Dmlc(tmp_path, SCRIPT, workers=2, servers=1, PS_VERBOSE=str(level)) as job:
        ends = job.ends()
    assert [end[1] for end in ends] == [0] * 4, "\n".join(end[3] for end in ends)
    worker, server = ends[1][3], ends[3][3]
    place = r"variable=\d+ chunk=0 step=\d+ part=\d+ bytes="
    assert re.search(rf"to pserver \S+: DeclareKey {place}\d+ key=\"a\"", worker)
    assert re.search(rf"from pserver \S+: KeyDeclared {place}\d+$", worker, re.MULTILINE)
    assert re.search(rf"from trainer 0: DeclareKey {place}\d+ key=\"a\"", server)
    for log, line in [
        (worker, rf"to pserver \S+: Push {place}16"),
        (worker, rf"from pserver \S+: Pulled {place}16"),
        (server, rf"from trainer 1: Push {place}16"),
        (server, rf"to trainer 1: Pushed {place}0"),
    ]:
        assert (re.search(line, log) is not None) == (level == 2), line


def test_a_worker_that_raises_ends_the_job_and_its_reason_is_told(tmp_path):
    with Dmlc(tmp_path, SCRIPT, workers=2, servers=1, RAISES="1") as job:
        scheduler, first, second, _ = job.ends()
    assert "ValueError: the data ran out" in second[3] and second[1] == 1
    assert first[1] == 1 and "the data ran out" in first[3]
    assert scheduler[1] == 1 and "E-kv-job-failed" in scheduler[3]


def test_a_worker_that_exits_with_another_status_than_0_has_not_completed(tmp_path):
    with Dmlc(tmp_path, SCRIPT, workers=2, servers=1, EXITS="1") as job:
        _, first, second, _ = job.ends()
    assert second[1] == 3 and first[1] == 1
    assert "ended with exit code 3" in first[3], first[3]


def test_a_worker_that_is_killed_is_named_to_the_others(tmp_path):
    with Dmlc(tmp_path, SCRIPT, workers=2, servers=1, DIES="1", PENSTOCK_RECONNECT_S="1") as job:
        scheduler, first, second, server = job.ends()
    assert second[1] == -9 and first[1] == 1 and server[1] != 0
    assert "PeerError" in first[3] and re.search(r"(worker|trainer) 1", first[3]), first[3]
    assert scheduler[1] == 1 and "worker 1" in scheduler[3]


USERS_EXPECT = """
    import numpy as np
    import penstock
    from penstock import kv as keyed

    def refused(id, call, *args, **named):
        try:
            call(*args, **named)
        except (penstock.ProgramError, penstock.StateError, NotImplementedError) as error:
            assert error.id == id, error
        else:
            raise AssertionError(id)

    kv = keyed.create('dist_sync')
    one = np.ones(2, 'float32')
    kv.init([1, 300000, 3, 4], [one, one.astype('int32'), one.astype('float16'), np.ones(2)])
    refused('E-kv-key-again', kv.init, 1, one)
    refused('E-kv-second', keyed.create, 'dist_sync')
    pushed = one * 2
    kv.push(1, pushed)
    assert kv.pull(1)[0] == 4 and pushed[0] == 2                   # a pull leaves what was pushed as it is
    kv.push(300000, np.array([7, 8], 'int32'))
    assert kv.pull(300000).tolist() == [14, 16]
    out = np.empty(2, 'float32')
    kv.pull(3, out=out).wait()
    assert out.tolist() == [1, 1]
    kv.push(4, np.full(2, 1 + 1e-12))
    assert kv.pull(4)[0] == 2 + 2e-12                              # 64 bits
    if kv.rank:
        kv.push(1, one)
    else:
        kv.pushpull(1, one, out=one.copy()).wait()                 # push on one worker, pushpull on the other
    assert kv.pull(1)[0] == 2
    refused('E-kv-value', kv.push, 1, np.ones(3, 'float32'))
    refused('E-kv-optimizer-refused', kv.set_optimizer, keyed.optimizer.create('groupadagrad'))
    kv.set_gradient_compression({'type': '2bit', 'threshold': 0.5})
    refused('E-compression-finite', kv.push, 1, np.array([1, np.nan], 'float32'))
    optimizer = keyed.optimizer.create('sgd', learning_rate=0.5)
    kv.barrier()
    refused('E-kv-optimizer-type', kv.set_optimizer, optimizer)    # there is a key of integers
    print(kv.rank, 'done')
"""


def test_wrong_calls_are_refused_where_they_are_made(tmp_path):
    with Dmlc(tmp_path, USERS_EXPECT, workers=2, servers=2) as job:
        ends = job.ends()
    assert [end[1] for end in ends] == [0] * 5, "\n".join(end[3] for end in ends)
    assert [end[2].strip() for end in ends if end[0] == "worker"] == ["0 done", "1 done"]


IN_ORDER = """
    import numpy as np
    from penstock import kv as keyed
    kv = keyed.create('dist_sync')
    kv.init('w', np.zeros(3, 'float32'))
    optimizer = keyed.optimizer.create('sgd', learning_rate=1.0)
    kv.set_optimizer(optimizer)
    kv.barrier()
    for step in range(6):
        kv.push('w', np.full(3, 1.0 + kv.rank, 'float32'))         # a new array each time, and no wait
    assert kv.pull('w').tolist() == [-18] * 3
    optimizer.learning_rate = 0.5
    kv.push('w', np.ones(3, 'float32'))
    assert kv.pull('w').tolist() == [-19] * 3
    optimizer.set_lr_mult({'w': 2})
    kv.push('w', np.ones(3, 'float32'))
    assert kv.pull('w').tolist() == [-21] * 3
    print(kv.rank, 'done')
"""


def test_pushes_keep_their_order_and_rates_that_change_take_effect(tmp_path):
    with Dmlc(tmp_path, IN_ORDER, workers=2, servers=2) as job:
        ends = job.ends()
    assert [end[1] for end in ends] == [0] * 5, "\n".join(end[3] for end in ends)
    assert [end[2].strip() for end in ends if end[0] == "worker"] == ["0 done", "1 done"]


RESTARTED = """
    import os
    import numpy as np
    from penstock import kv as keyed
    kv = keyed.create('dist_sync')
    kv.init('w', np.zeros(3, 'float32'))
    kv.set_optimizer(keyed.optimizer.create('sgd', learning_rate=1.0, momentum=0.5))
    kv.barrier()
    begin = kv.rounds('w')
    for step in range(begin, 6):
        if kv.rank == 1 and step == 3 and begin == 0:
            os.kill(os.getpid(), 9)
        kv.push('w', np.full(3, 1.0 + kv.rank + step, 'float32'))
        w = kv.pull('w')
    print('worker', kv.rank, 'began at', begin, w.tolist(), kv.rounds('w'))
"""


def test_a_worker_that_is_started_again_goes_on_where_it_was(tmp_path):
    script = tmp_path / "job.py"
    script.write_text(textwrap.dedent(RESTARTED))
    command = [sys.executable, "-m", "penstock.distributed.launch", "--server_num", "2", "--worker_num", "2"]
    command += [
        "--max_role_restart",
        "1",
        "--on_trainer_loss",
        "wait",
        "--log_dir",
        str(tmp_path / "logs"),
        str(script),
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=WAIT_S, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    logs = "\n".join(path.read_text() for path in (tmp_path / "logs").rglob("*"))
    value = -73.96875  # of all six steps, each once
    assert f"worker 0 began at 0 {[value] * 3} 6" in logs and f"worker 1 began at 3 {[value] * 3} 6" in logs


WAITS = """
    import numpy as np
    from penstock import kv as keyed
    kv = keyed.create('dist_sync')
    kv.init(0, np.zeros(1))
    print('ready', flush=True)
    input()
    kv.push(0, np.ones(1))
    print(kv.pull(0)[0], kv.num_dead_node())
"""


def test_a_job_goes_on_without_its_scheduler(tmp_path):
    with Dmlc(tmp_path, WAITS, workers=2, servers=1) as job:
        scheduler, *workers, _ = job.processes
        assert [worker.stdout.readline() for worker in workers] == ["ready\n"] * 2
        scheduler.kill()
        scheduler.wait()
        for worker in workers:
            worker.stdin.write("\n")
            worker.stdin.flush()
        ends = job.ends()
    assert [end[1] for end in ends] == [-9, 0, 0, 0] and [end[2] for end in ends][1:3] == ["2.0 0\n"] * 2


HOLDS_ON = """
    import time
    import numpy as np
    from penstock import kv as keyed
    kv = keyed.create('dist_sync')
    kv.init(0, np.zeros(1))
    print('ready', flush=True)
    input()
    kv.push(0, np.ones(1))
    print(kv.pull(0)[0], kv.num_dead_node(), flush=True)
    if kv.rank == 0:
        input()
        end = time.monotonic() + 60
        while kv.num_dead_node() == 0 and time.monotonic() < end:
            time.sleep(0.05)
        print(kv.num_dead_node(), flush=True)
        raise SystemExit(1)
    input()
"""


def test_the_processes_come_back_to_a_scheduler_that_is_started_again(tmp_path):
    with Dmlc(tmp_path, HOLDS_ON, workers=2, servers=1) as job:
        first, second = job.processes[1:3]
        assert [worker.stdout.readline() for worker in (first, second)] == ["ready\n"] * 2
        job.kill_and_start_again(0)
        scheduler = job.processes[0]
        told = scheduler.stderr.readline()
        assert "was started again" in told, told
        for worker in (first, second):
            worker.stdin.write("\n")
            worker.stdin.flush()
        assert [worker.stdout.readline() for worker in (first, second)] == ["2.0 0\n"] * 2
        second.kill()
        first.stdin.write("\n")
        first.stdin.flush()
        assert first.stdout.readline() == "1\n"  # the new scheduler knows of a death
        scheduler.wait(WAIT_S)
        assert scheduler.returncode == 1 and "worker 1" in scheduler.stderr.read()
