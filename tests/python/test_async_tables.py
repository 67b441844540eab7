"""Tables sharded by id, of trainers that do not wait for the others: each gradient is applied once. Real processes."""

import numpy as np
import pytest
from fleet_jobs import launch_well

# argv: the strategy. The gradient of each row that is looked up is 1, whatever its value.
SCRIPT = """
    import sys
    import numpy as np
    import penstock.fluid as fluid
    from job_script import start_worker
    from penstock.fluid.incubate.fleet.base import role_maker
    from penstock.fluid.incubate.fleet.parameter_server.distribute_transpiler import StrategyFactory, fleet
    L = fluid.layers

    words = fluid.data('words', [None, 1], 'int64')
    rows = fluid.layers.embedding(words, [50, 4], is_sparse=True, is_distributed=True,
                                  param_attr=fluid.ParamAttr('table', initializer=fluid.initializer.Constant(1.0)))
    test = fluid.default_main_program().clone(for_test=True)
    dense = L.create_parameter([3], 'float32', name='dense', default_initializer=fluid.initializer.Constant(1.0))
    loss = L.reduce_sum(rows) + L.reduce_sum(dense)
    exe = fluid.Executor(fluid.CPUPlace())
    fleet.init(role_maker.PaddleCloudRoleMaker())
    strategy = getattr(StrategyFactory, 'create_%s_strategy' % sys.argv[1])()
    fleet.distributed_optimizer(fluid.optimizer.SGD(0.01), strategy).minimize(loss)
    start_worker(fleet, exe)
    random, counts = np.random.RandomState(fleet.worker_index()), np.zeros(50)
    for step in range(40):
        ids = random.randint(0, 50, (8, 1))
        np.add.at(counts, ids.ravel(), 1)
        exe.run(fleet.main_program, feed={'words': ids})
    fleet.barrier_worker()
    found = exe.run(test, feed={'words': np.arange(50).reshape(50, 1)}, fetch_list=[rows])[0]
    np.savez('worker%d.npz' % fleet.worker_index(), counts=counts, found=found)
    fleet.barrier_worker()
    fleet.stop_worker()
"""


@pytest.mark.parametrize("strategy", ["async", "half_async"])
def test_each_gradient_of_a_sharded_table_is_applied_once(tmp_path, strategy):
    trainers, _ = launch_well(tmp_path, SCRIPT, strategy)
    want = 1 - 0.01 * sum(trainer["counts"] for trainer in trainers)
    for trainer in trainers:
        np.testing.assert_allclose(trainer["found"], np.repeat(want.reshape(50, 1), 4, 1), rtol=1e-4)
