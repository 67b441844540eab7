"""Several threads of a trainer in the async strategy: all of them train, beside servers and another trainer."""

import numpy as np
from fleet_jobs import launch_well

TRAIN = '''
    import sys
    import numpy as np
    import penstock.fluid as fluid
    from penstock.fluid.incubate.fleet.base import role_maker
    from penstock.fluid.incubate.fleet.parameter_server.distribute_transpiler import StrategyFactory, fleet

    x, y = fluid.data('x', [None, 8]), fluid.data('y', [None, 1])
    output = fluid.layers.fc(x, 1)
    loss = fluid.layers.mean(fluid.layers.square_error_cost(output, y))
    fleet.init(role_maker.PaddleCloudRoleMaker())
    fleet.distributed_optimizer(fluid.optimizer.SGD(0.004), StrategyFactory.create_async_strategy()).minimize(loss)
    if fleet.is_server():
        fleet.init_server()
        fleet.run_server()
        sys.exit(0)
    fleet.init_worker()
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(fleet.startup_program)
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
'''


def test_threads_of_a_trainer_train_beside_each_other(tmp_path):
    trainers, logs = launch_well(tmp_path, TRAIN)
    assert 'one thread trains' not in ''.join(logs.values())
    for trainer in trainers:
        rows = np.random.RandomState(9).rand(500, 8)
        loss = np.mean((rows @ trainer['w_0'] + trainer['b_0'] - rows.sum(axis=1, keepdims=True))**2)
        assert loss < 1, 'it is 16.7 of an output of 0'
