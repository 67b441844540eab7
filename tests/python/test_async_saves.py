"""Trainers that do not wait for each other begin together, and what one saves are the pservers' parameters, not its own
last copies. Real processes."""

import numpy as np
import pytest
from fleet_jobs import launch_well

# argv: the strategy. Trainer 0 makes few steps and trainer 1 many; then all save.
SCRIPT = """
    import os, pickle, sys, warnings
    import numpy as np
    import penstock.fluid as fluid
    from penstock.fluid.incubate.fleet.base import role_maker
    from penstock.fluid.incubate.fleet.parameter_server.distribute_transpiler import StrategyFactory, fleet

    x, y = fluid.data('x', [None, 64]), fluid.data('y', [None, 1])
    words = fluid.data('words', [None, 1], 'int64')
    hidden = fluid.layers.fc(x, 512, act='tanh', param_attr='w')
    word = fluid.layers.embedding(words, [50, 4], is_sparse=sys.argv[1] != 'dc_asgd', param_attr='table')
    output = fluid.layers.fc([hidden, word], 1, param_attr=[fluid.ParamAttr(name='v0'), fluid.ParamAttr(name='v1')])
    loss = fluid.layers.mean(fluid.layers.square_error_cost(output, y))
    test = fluid.default_main_program().clone(for_test=True)
    exe = fluid.Executor(fluid.CPUPlace())
    fleet.init(role_maker.PaddleCloudRoleMaker())
    config = fluid.DistributeTranspilerConfig()
    config.sync_mode = False
    strategy = {'async': StrategyFactory.create_async_strategy,
                'half_async': StrategyFactory.create_half_async_strategy,
                'geo': lambda: StrategyFactory.create_geo_strategy(100)}.get(sys.argv[1], lambda: config)()
    config.enable_dc_asgd = sys.argv[1] == 'dc_asgd'
    if sys.argv[1] in ('alone', 'dc_asgd'):    # without a communicator
        index, pserver = int(os.environ.get('PADDLE_TRAINER_ID', 0)), os.environ['TRAINING_ROLE'] == 'PSERVER'
        fluid.optimizer.SGD(0.002).minimize(loss)
        t = fluid.DistributeTranspiler(config)
        t.transpile(0 if pserver else index, pservers=os.environ['PADDLE_PSERVER_ENDPOINTS'], trainers=2)
        if pserver:
            main, startup = t.get_pserver_programs(os.environ['PADDLE_CURRENT_ENDPOINT'])
            exe.run(startup)
            exe.run(main)
            sys.exit(0)
        main, startup, stop = t.get_trainer_program(), fluid.default_startup_program(), exe.close
    else:
        fleet.distributed_optimizer(fluid.optimizer.SGD(0.002), strategy).minimize(loss)
        if fleet.is_server():
            fleet.init_server()
            fleet.run_server()
            sys.exit(0)
        fleet.init_worker()
        index, main, startup, stop = fleet.worker_index(), fleet.main_program, fleet.startup_program, fleet.stop_worker
    exe.run(startup)
    if index == 1:
        fleet.barrier_worker()    # trainer 0 ends first
    for step in range(2 if index == 0 else 20):
        random = np.random.RandomState(step)
        rows = random.rand(8, 64).astype('float32')
        exe.run(main, feed={'x': rows, 'words': random.randint(0, 50, (8, 1)), 'y': rows.mean(1, keepdims=True)})
    if index == 0:
        fleet.barrier_worker()
    names = ['w', 'v0', 'v1', 'fc_0.b_0', 'fc_1.b_0']
    own = lambda: {name: np.array(fluid.global_scope().find_var(name).get_tensor()) for name in names}
    before, found = own(), {}
    fleet.barrier_worker()
    fluid.io.save_params(exe, 'first%d' % index, main)    # sends what this trainer has not sent yet
    fleet.barrier_worker()

    def note(way, values):
        found.update({way + ':' + name: values[name] for name in names})

    folder = 'saved%d' % index
    for way, save in (('persistables', fluid.io.save_persistables), ('params', fluid.io.save_params)):
        save(exe, folder + way, main)
        note(way, fluid.io.load_program_state(folder + way, names))
    bytes = fluid.io.save_vars(exe, None, main, vars=names)
    scope = fluid.Scope()
    with fluid.scope_guard(scope):
        fluid.io.load_vars(exe, None, main, vars=names, filename=bytes)
    note('vars', {name: np.array(scope.find_var(name).get_tensor()) for name in names})
    fluid.save(main, folder + '/prefix')
    note('save', fluid.io.load_program_state(folder + '/prefix'))
    if index == 0 or sys.argv[1] == 'geo':
        fluid.io.save_inference_model(folder + 'test', ['x', 'words'], [output], exe, main_program=test)
        note('test program', fluid.io.load_program_state(folder + 'test', names))
    fleet.barrier_worker()
    # A program of the user overwrites a copy, as averages do: the new value is saved.
    with fluid.program_guard(fluid.Program()):
        w = fluid.default_main_program().global_block().create_var(name='w', shape=[64, 512], dtype='float32',
                                                                   persistable=True)
        fluid.layers.assign(np.full((64, 512), 5, 'float32'), w)
        exe.run()
    fluid.global_scope().find_var('v1').get_tensor().set(np.full((4, 1), 7, 'float32'), None)
    fluid.io.save_params(exe, folder + 'changed', main)
    found['changed'] = fluid.io.load_program_state(folder + 'changed', ['w'])['w']
    found['set'] = fluid.io.load_program_state(folder + 'changed', ['v1'])['v1']
    fleet.barrier_worker()
    stop()
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter('always')
        if sys.argv[1] != 'geo':
            fluid.io.save_vars(exe, folder + 'late', main, vars=['fc_0.b_0'])
    found['said'] = '\\n'.join(str(one.message) for one in said)
    np.savez('worker%d.npz' % index, **found, **{'before:' + name: value for name, value in before.items()})
"""
NAMES = ["w", "v0", "v1", "fc_0.b_0", "fc_1.b_0"]


@pytest.mark.parametrize("strategy", ["async", "half_async", "geo", "alone", "dc_asgd"])
def test_saves_contain_the_values_of_the_pservers(tmp_path, strategy):
    first, second = launch_well(tmp_path, SCRIPT, strategy)[0]
    ways = ["persistables", "params", "vars", "save"]
    for name in NAMES:
        for way in ways:
            np.testing.assert_array_equal(first[f"{way}:{name}"], second[f"{way}:{name}"], name + way)
            np.testing.assert_array_equal(first[f"{way}:{name}"], first["test program:" + name], name + way)
        assert np.any(first["params:" + name] != first["before:" + name]), name
        if strategy != "geo":  # the barrier waits for what the trainers have sent
            one, other = ((tmp_path / folder / name).read_bytes() for folder in ("first0", "first1"))
            assert one == other, name
    for trainer in (first, second):
        if strategy != "geo":
            np.testing.assert_array_equal(trainer["changed"], np.full((64, 512), 5))
            np.testing.assert_array_equal(trainer["set"], np.full((4, 1), 7))
            assert "the saved parameters are this trainer's copies from its last step" in str(trainer["said"])


TOGETHER = """
    import os, sys
    import numpy as np
    import penstock.fluid as fluid
    from penstock.fluid.incubate.fleet.base import role_maker
    from penstock.fluid.incubate.fleet.parameter_server.distribute_transpiler import StrategyFactory, fleet

    fleet.init(role_maker.PaddleCloudRoleMaker())
    loss = fluid.layers.mean(fluid.layers.fc(fluid.data('x', [None, 2]), 1))
    strategy = {'async': StrategyFactory.create_async_strategy,
                'half_async': StrategyFactory.create_half_async_strategy,
                'geo': lambda: StrategyFactory.create_geo_strategy(2)}[sys.argv[1]]()
    fleet.distributed_optimizer(fluid.optimizer.SGD(0.1), strategy).minimize(loss)
    if fleet.is_server():
        fleet.init_server()
        fleet.run_server()
        sys.exit(0)
    if fleet.worker_index() == 1:    # this trainer is behind the other one
        for _ in range(2000):
            fluid.Program.parse_from_string(fleet.main_program.desc.serialize_to_string())
    open('began%d' % fleet.worker_index(), 'w').close()
    fleet.init_worker()
    assert os.path.exists('began0') and os.path.exists('began1'), os.listdir('.')
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(fleet.startup_program)
    exe.run(fleet.main_program, feed={'x': np.ones((1, 2), 'float32')})
    fleet.stop_worker()
    np.savez('worker%d.npz' % fleet.worker_index())
"""


@pytest.mark.parametrize("strategy", ["async", "half_async", "geo"])
def test_asynchronous_trainers_start_from_the_same_values(tmp_path, strategy):
    launch_well(tmp_path, TOGETHER, strategy)
