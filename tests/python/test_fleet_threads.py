"""Several threads of a trainer in the async strategy: all of them train, together with servers and another trainer."""

import subprocess
import sys
import textwrap

import numpy as np
from fleet_jobs import launch, launch_well

TRAIN = """
    import sys
    import numpy as np
    import penstock.fluid as fluid
    from job_script import start_worker
    from penstock.fluid.incubate.fleet.base import role_maker
    from penstock.fluid.incubate.fleet.parameter_server.distribute_transpiler import StrategyFactory, fleet

    x, y = fluid.data('x', [None, 8]), fluid.data('y', [None, 1])
    output = fluid.layers.fc(x, 1)
    loss = fluid.layers.mean(fluid.layers.square_error_cost(output, y))
    fleet.init(role_maker.PaddleCloudRoleMaker())
    fleet.distributed_optimizer(fluid.optimizer.SGD(0.004), StrategyFactory.create_async_strategy()).minimize(loss)
    exe = fluid.Executor(fluid.CPUPlace())
    start_worker(fleet, exe)
    index = fleet.worker_index()
    random, files = np.random.RandomState(index), []
    for i in range(3):
        rows = random.rand(600, 8)
        files.append('train%d.%d' % (index, i))
        with open(files[-1], 'w') as file:
            for row in rows:
                file.write('8 %s 1 %f\\n' % (' '.join('%f' % value for value in row), row.sum()))
    dataset = fluid.DatasetFactory().create_dataset('QueueDataset')
    dataset.set_use_var([x, y])
    dataset.set_batch_size(8)
    dataset.set_thread(3)
    dataset.set_filelist(files)
    for epoch in range(5):
        exe.train_from_dataset(fleet.main_program, dataset)
    fleet.stop_worker()
    values = {name: np.array(fluid.global_scope().find_var('fc_0.' + name).get_tensor()) for name in ('w_0', 'b_0')}
    np.savez('worker%d.npz' % index, **values)
"""


def test_threads_of_a_trainer_run_concurrently(tmp_path):
    trainers, logs = launch_well(tmp_path, TRAIN)
    assert "one thread trains" not in "".join(logs.values())
    for trainer in trainers:
        rows = np.random.RandomState(9).rand(500, 8)
        loss = np.mean((rows @ trainer["w_0"] + trainer["b_0"] - rows.sum(axis=1, keepdims=True)) ** 2)
        assert loss < 1, "it is 16.7 of an output of 0"


# The gradient of each id is a row of ones and the rate is 1: a row ends at minus the number of times that its id came.
COUNT = """
    import sys
    import numpy as np
    import penstock.fluid as fluid
    from penstock.fluid.incubate.fleet.base import role_maker
    from penstock.fluid.incubate.fleet.parameter_server.distribute_transpiler import StrategyFactory, fleet

    ids = fluid.data('ids', [None, 1], 'int64')
    rows = fluid.embedding(ids, [4, 16], is_sparse=True, param_attr=fluid.ParamAttr(
        'table', initializer=fluid.initializer.Constant(0.0)))
    loss = fluid.layers.reduce_sum(rows)
    exe = fluid.Executor(fluid.CPUPlace())
    if sys.argv[1] == 'local':
        index, main = 0, fluid.default_main_program()
        fluid.optimizer.SGD(1.0).minimize(loss)
        exe.run(fluid.default_startup_program())
    else:
        fleet.init(role_maker.PaddleCloudRoleMaker())
        fleet.distributed_optimizer(fluid.optimizer.SGD(1.0), StrategyFactory.create_async_strategy()).minimize(loss)
        if fleet.is_server():
            fleet.init_server()
            fleet.run_server()
            if any(var.name == 'table' for var in fleet.main_program.list_vars()):
                np.save('table.npy', np.array(fluid.global_scope().find_var('table').get_tensor()))
            sys.exit(0)
        fleet.init_worker()
        exe.run(fleet.startup_program)
        index, main = fleet.worker_index(), fleet.main_program
    files = ['ids%d.%d' % (index, i) for i in range(3)]
    for file in files:
        with open(file, 'w') as out:
            out.write('1 0\\n1 1\\n' * 400)
    dataset = fluid.DatasetFactory().create_dataset('QueueDataset')
    dataset.set_use_var([ids])
    dataset.set_batch_size(4)
    dataset.set_thread(3)
    dataset.set_filelist(files)
    exe.train_from_dataset(main, dataset)
    if sys.argv[1] != 'local':
        fleet.stop_worker()
    else:
        np.save('table.npy', np.array(fluid.global_scope().find_var('table').get_tensor()))
"""


def test_servers_lose_no_update_of_several_threads(tmp_path):
    code, said, logs = launch(tmp_path, COUNT, "servers")
    assert code == 0, said + "".join(logs.values())
    expected = np.repeat([[-2400.0], [-2400.0], [0.0], [0.0]], 16, axis=1)
    np.testing.assert_array_equal(np.load(tmp_path / "table.npy"), expected)


def test_threads_without_servers_lose_only_concurrent_updates(tmp_path):
    """Threads do not wait for each other (Hogwild)."""
    (tmp_path / "job.py").write_text(textwrap.dedent(COUNT))
    subprocess.run([sys.executable, "job.py", "local"], cwd=tmp_path, check=True, timeout=60)
    table = np.load(tmp_path / "table.npy")
    assert (table[2:] == 0).all()
    assert (table[:2] >= -1200).all() and (table[:2] < -0.9 * 1200).all(), table
