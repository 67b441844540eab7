"""The connections of a trainer cannot be used for 1, 5 and 20 s: no step is lost, none is applied twice, in every mode
and over every transport. Ranks that lose a connection go on, or say what has happened. Real processes."""

import subprocess
import sys
import textwrap

import job_script
import numpy as np
import pytest

WAIT_S = 300
STEPS = 12

SHUT_DOWN = """
    import os, socket

    def shut_down(families=(socket.AF_INET, socket.AF_INET6, socket.AF_UNIX)):
        '''Shuts down the connected sockets of this process. Returns their number.'''
        count = 0
        for name in os.listdir('/proc/self/fd'):
            try:
                if not os.readlink('/proc/self/fd/' + name).startswith('socket:'):
                    continue
                with socket.socket(fileno=os.dup(int(name))) as one:
                    one.getpeername()
                    if one.family in families:
                        one.shutdown(socket.SHUT_RDWR)
                        count += 1
            except OSError:
                continue
        return count
"""

# argv: the strategy, and for each cut the step in which trainer 0 loses its connections, with seconds: "3:1,6:5". A
# gradient of `table` is 1 for each row that is looked up: the rows count the gradients that were applied.
SCRIPT = """
    import sys, threading, time
    import numpy as np
    import penstock.fluid as fluid
    from job_script import start_worker
    from penstock.fluid.incubate.fleet.base import role_maker
    from penstock.fluid.incubate.fleet.parameter_server.distribute_transpiler import StrategyFactory, fleet
    L = fluid.layers

    mode, steps = sys.argv[1], int(sys.argv[3])
    cuts = {int(step): float(seconds) for step, seconds in
            (cut.split(':') for cut in sys.argv[2].split(',') if cut)}
    broken = [0]

    def cut(seconds):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            broken[0] += shut_down()
            time.sleep(0.005)

    fluid.default_main_program().random_seed = fluid.default_startup_program().random_seed = 1
    one = fluid.initializer.Constant(1.0)
    words = fluid.data('words', [None, 1], 'int64')
    rows = L.embedding(words, [50, 4], is_sparse=True, is_distributed=mode != 'geo',
                       param_attr=fluid.ParamAttr('table', initializer=one))
    test = fluid.default_main_program().clone(for_test=True)
    dense = L.create_parameter([30000], 'float32', name='dense', default_initializer=one)
    loss = L.reduce_sum(rows) + L.reduce_sum(dense)
    x = L.fc(L.reduce_mean(rows, dim=1, keep_dim=True), 300, act='tanh', param_attr='w')
    loss = loss + (0.01 * L.reduce_mean(L.square(x)) if mode == 'sync' else 0)
    exe = fluid.Executor(fluid.CPUPlace())
    fleet.init(role_maker.PaddleCloudRoleMaker())
    strategy = (StrategyFactory.create_geo_strategy(2) if mode == 'geo' else
                getattr(StrategyFactory, 'create_%s_strategy' % mode)())
    optimizer = fluid.optimizer.Adam(0.01, lazy_mode=True) if mode == 'sync' else fluid.optimizer.SGD(0.01)
    fleet.distributed_optimizer(optimizer, strategy).minimize(loss)
    start_worker(fleet, exe)
    index = fleet.worker_index()
    random, counts = np.random.RandomState(index), np.zeros(50)
    for step in range(steps):
        ids = random.randint(0, 50, (8, 1))
        np.add.at(counts, ids.ravel(), 1)
        if index == 0 and step in cuts:
            thread = threading.Thread(target=cut, args=(cuts[step],))
            thread.start()
        exe.run(fleet.main_program, feed={'words': ids})
        if index == 0 and step in cuts:
            thread.join()
    fleet.barrier_worker()
    if index == 0 or mode == 'geo':
        fluid.io.save_persistables(exe, 'saved%d' % index, fleet.main_program)
    fleet.barrier_worker()
    held = {name: np.array(fluid.global_scope().find_var(name).get_tensor())
            for name in (['dense', 'w'] if mode == 'sync' else ['dense'])}
    if mode != 'geo':
        held['table'] = exe.run(test, feed={'words': np.arange(50).reshape(50, 1)}, fetch_list=[rows])[0]
    else:
        held['table'] = fluid.io.load_program_state('saved%d' % index, ['table'])['table']
        held['dense'] = fluid.io.load_program_state('saved%d' % index, ['dense'])['dense']
    np.savez('worker%d.npz' % index, counts=counts, broken=broken[0], **held)
    fleet.barrier_worker()
    fleet.stop_worker()
"""


def launch(folder, script, options, arguments, **environment):
    """Returns the exit code, and the launcher's output with the logs."""
    (folder / "job.py").write_text(textwrap.dedent(SHUT_DOWN) + textwrap.dedent(script))
    done = subprocess.run(
        [sys.executable, "-m", "penstock.distributed.launch", *options, "job.py", *map(str, arguments)],
        cwd=folder,
        env=job_script.environment(OMP_NUM_THREADS="1", **environment),
        text=True,
        capture_output=True,
        timeout=WAIT_S,
    )
    logs = "".join(f"\n{path.name}:\n{path.read_text()[-3000:]}" for path in sorted(folder.glob("mylog/*log.*")))
    return done.returncode, done.stdout + done.stderr + logs


def run(folder, mode, transport, cuts, steps=STEPS):
    """Returns the arrays of the two trainers, and the launcher's output with the logs."""
    folder.mkdir()
    options = ["--server_num", "2", "--worker_num", "2"]
    code, said = launch(folder, SCRIPT, options, [mode, cuts, steps], PENSTOCK_TRANSPORT=transport)
    assert code == 0, said
    return [dict(np.load(folder / f"worker{index}.npz")) for index in range(2)], said


def check(tmp_path, mode, transport, cuts, steps=STEPS):
    trainers, said = run(tmp_path / "cut", mode, transport, cuts, steps)
    assert trainers[0]["broken"] > 2 * len(cuts.split(",")), "both pservers' connections, again and again"
    assert "is connected again after " in said, said
    if mode in ("sync", "geo"):
        undisturbed, _ = run(tmp_path / "undisturbed", mode, transport, "", steps)
        for one, other in zip(trainers, undisturbed, strict=True):
            for name in other.keys() - {"broken"}:
                if mode == "sync":
                    np.testing.assert_array_equal(one[name], other[name], name)
                else:  # the changes of two trainers arrive in any order
                    np.testing.assert_allclose(one[name], other[name], rtol=1e-5, err_msg=name)
        return
    times = sum(trainer["counts"] for trainer in trainers).reshape(50, 1)
    for trainer in trainers:
        np.testing.assert_allclose(trainer["table"], np.repeat(1 - 0.01 * times, 4, 1), rtol=1e-4)


def test_a_second_without_connections_changes_no_byte(tmp_path):
    check(tmp_path, "sync", "auto", "2:1", steps=5)


@pytest.mark.slow
@pytest.mark.parametrize("transport", ["auto", "tcp"])
@pytest.mark.parametrize("mode", ["sync", "async", "half_async", "geo"])
def test_seconds_without_connections_lose_and_repeat_nothing(tmp_path, mode, transport):
    check(tmp_path, mode, transport, "2:1,5:5,8:20")


# argv: the rank that loses its connections in step 3, once. Its unix sockets are those to rank 0's store and, with
# elastic ranks, to the launcher.
RANKS = """
    import sys
    import numpy as np
    import penstock.hvd as hvd

    hvd.init()
    state, cuts = hvd.elastic.ObjectState(step=0, total=0.0), []

    def train(state):
        print('begins at', state.step)
        while state.step < 6:
            if state.step == 3 and hvd.rank() == int(sys.argv[1]) and not cuts:
                cuts.append(shut_down(families=(socket.AF_INET, socket.AF_INET6)))
            state.total += float(hvd.allreduce(np.array([state.step]), op=hvd.Sum)[0])
            state.step += 1
            state.commit()
        return state.total

    print('total', (hvd.elastic.run(train) if 'ELASTIC' in os.environ else train)(state))
"""


@pytest.mark.slow
@pytest.mark.parametrize("rank", [0, 1])
def test_ranks_that_share_memory_need_no_connection(tmp_path, rank):
    code, said = launch(tmp_path, RANKS, ["--worker_num", "2"], [rank])
    assert code == 0 and "total 30.0" in said, said


@pytest.mark.slow
@pytest.mark.parametrize("rank", [0, 1])
def test_ranks_over_a_network_say_that_a_connection_broke(tmp_path, rank):
    code, said = launch(tmp_path, RANKS, ["--worker_num", "2"], [rank], PENSTOCK_COLLECTIVE_BACKEND="gloo")
    assert code == 1 and "E-collective-link-broken" in said, said
    assert f"the connection to rank {1 - rank}, whose process still runs, was broken" in said, said
    assert "process ended" not in said, said


@pytest.mark.slow
@pytest.mark.parametrize("rank", [0, 1])
def test_elastic_ranks_repeat_the_operation_on_new_connections(tmp_path, rank):
    options = ["--worker_num", "2", "--max_role_restart", "1"]
    code, said = launch(tmp_path, RANKS, options, [rank], PENSTOCK_COLLECTIVE_BACKEND="gloo", ELASTIC="1")
    assert code == 0 and "total 30.0" in said, said
    assert "begins at 3" in said and "it is started again" not in said, said
