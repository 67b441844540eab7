"""Fleets with parameter servers as real processes: each strategy trains, and equals the same job by
DistributeTranspiler."""

import numpy as np
import pytest
from fleet_jobs import launch, launch_well

# argv: the strategy, 'fleet' or 'transpiler', and how many steps.
TRAIN = """
    import os, sys
    import numpy as np
    import penstock.fluid as fluid
    from penstock.fluid.communicator import Communicator, DistributedMode
    from penstock.fluid.incubate.fleet.base import role_maker
    from penstock.fluid.incubate.fleet.parameter_server.distribute_transpiler import StrategyFactory, fleet

    name, by, steps = sys.argv[1], sys.argv[2], int(sys.argv[3])
    role = role_maker.PaddleCloudRoleMaker()
    fluid.default_main_program().random_seed = fluid.default_startup_program().random_seed = 3
    x, y = fluid.data('x', [None, 8]), fluid.data('y', [None, 1])
    words = fluid.data('words', [None, 1], 'int64')
    hidden = fluid.layers.fc(x, 1200, act='relu')
    word = fluid.layers.embedding(words, [2000, 16], is_sparse=True, param_attr=fluid.ParamAttr(name='table'))
    output = fluid.layers.fc([hidden, word], 1)
    loss = fluid.layers.mean(fluid.layers.square_error_cost(output, y))
    # Late gradients act as momentum themselves; with more of it a stalled trainer could make the job diverge.
    optimizer = fluid.optimizer.SGD(0.004) if name == 'async' else fluid.optimizer.Momentum(0.002, 0.9)
    if 'ADAM' in os.environ:
        optimizer = fluid.optimizer.Adam(fluid.layers.exponential_decay(0.01, 2, 0.9, staircase=True))
    exe = fluid.Executor(fluid.CPUPlace())
    if by == 'fleet':
        fleet.init(role)
        strategy = {'sync': StrategyFactory.create_sync_strategy, 'async': StrategyFactory.create_async_strategy,
                    'half_async': StrategyFactory.create_half_async_strategy,
                    'geo': lambda: StrategyFactory.create_geo_strategy(3)}[name]()
        fleet.distributed_optimizer(optimizer, strategy).minimize(loss)
        if fleet.is_server():
            fleet.init_server(os.environ.get('MODEL'))
            fleet.run_server()
            print('served')
            sys.exit(0)
        fleet.init_worker()
        exe.run(fleet.startup_program)
        main, stop = fleet.main_program, fleet.stop_worker
    else:
        optimizer.minimize(loss)
        config = fluid.DistributeTranspilerConfig()
        config.sync_mode, config.runtime_split_send_recv = False, True
        config.half_async, config.completely_not_async = name in ('half_async', 'sync'), name == 'sync'
        if name == 'geo':
            config.geo_sgd_mode, config.geo_sgd_need_push_nums = True, 3
        index = role.worker_index() if role.is_worker() else 0
        t = fluid.transpiler.GeoSgdTranspiler(config) if name == 'geo' else fluid.DistributeTranspiler(config)
        t.transpile(index, pservers=','.join(role.get_pserver_endpoints()), trainers=role.worker_num(),
                    sync_mode=False)
        if role.is_server():
            main, startup = t.get_pserver_programs(os.environ['PADDLE_CURRENT_ENDPOINT'])
            exe.run(startup)
            exe.run(main)
            sys.exit(0)
        main = t.get_trainer_program()
        communicator = Communicator(main, getattr(DistributedMode, name.upper()))
        communicator.start()
        exe.run(fluid.default_startup_program())

        def stop():
            communicator.stop()
            exe.close()

    scope, index = fluid.global_scope(), role.worker_index()
    # Servers alone have the table, except in geo-SGD.
    names = [p.name for p in main.all_parameters() if name == 'geo' or p.name != 'table']
    values = lambda: {name: np.array(scope.find_var(name).get_tensor()) for name in names}
    start, losses = values(), []
    first = int(os.environ.get('FIRST', 0))
    for step in range(first, first + steps):
        random = np.random.RandomState(10 * step + index)
        rows = random.rand(16, 8).astype('float32')
        feed = {'x': rows, 'words': random.randint(0, 2000, (16, 1)), 'y': rows.sum(axis=1, keepdims=True)}
        losses.append(exe.run(main, feed=feed, fetch_list=[loss])[0][0])
    more = {}
    if by == 'fleet':
        mine, whole = np.array([index + 1, len(losses)]), np.zeros(2, 'int64')
        fleet.all_reduce_worker(mine, whole)
        more = {'summed': whole}
        fleet.barrier_worker()
        if 'SAVE' in os.environ and fleet.is_first_worker():
            fleet.save_persistables(exe, 'model')
            fleet.save_inference_model(exe, 'inference', ['x', 'words'], [output])
    stop()
    np.savez('worker%d.npz' % index, losses=losses, **more, **values(),
             **{'start:' + name: value for name, value in start.items()})
"""
UNTRAINED = 8 / 12 + 4**2  # of an output of 0: the targets are sums of 8 numbers from [0, 1)


@pytest.mark.parametrize("strategy", ["sync", "half_async", "async", "geo"])
def test_each_strategy_trains_with_two_servers_and_two_trainers(tmp_path, strategy):
    trainers, logs = launch_well(tmp_path, TRAIN, strategy, "fleet", 60)
    for trainer in trainers:
        assert np.isfinite(trainer["losses"]).all()
        assert np.mean(trainer["losses"][-10:]) < 0.25 * UNTRAINED, trainer["losses"]
        np.testing.assert_array_equal(trainer["summed"], [3, 120])
    for index in range(2):
        assert "served" in logs[f"serverlog.{index}"]


@pytest.mark.parametrize("strategy, workers", [("sync", 2), ("half_async", 1), ("geo", 1)])
def test_a_fleet_job_equals_the_transpilers_job(tmp_path, strategy, workers):
    """Jobs of several trainers that do not wait for each other depend on timing."""
    fleets, _ = launch_well(tmp_path, TRAIN, strategy, "fleet", 7, workers=workers)
    transpilers, _ = launch_well(tmp_path, TRAIN, strategy, "transpiler", 7, workers=workers)
    for ours, theirs in zip(fleets, transpilers):
        for name in theirs:
            np.testing.assert_array_equal(ours[name], theirs[name], name)


def test_a_saved_model_is_loaded_by_servers_and_by_one_machine(tmp_path, fluid):
    first, _ = launch_well(tmp_path, TRAIN, "sync", "fleet", 5, SAVE="1")
    again, _ = launch_well(tmp_path, TRAIN, "sync", "fleet", 1, MODEL="model")
    names = [name[len("start:") :] for name in first[0] if name.startswith("start:")]
    for name in names:
        np.testing.assert_array_equal(again[0]["start:" + name], first[0][name], name)
        assert np.any(first[0][name] != first[0]["start:" + name]), name
    exe = fluid.Executor(fluid.CPUPlace())
    program, feeds, fetches = fluid.io.load_inference_model(str(tmp_path / "inference"), exe)
    assert feeds == ["x", "words"]
    for index in range(2):  # the second job begins with the losses of the saved model, tables included
        random = np.random.RandomState(index)
        rows = random.rand(16, 8).astype("float32")
        (got,) = exe.run(program, feed={"x": rows, "words": random.randint(0, 2000, (16, 1))}, fetch_list=fetches)
        loss = np.mean((got - rows.sum(axis=1, keepdims=True)) ** 2)
        np.testing.assert_allclose(again[index]["losses"][0], loss, rtol=1e-4)


@pytest.mark.parametrize("optimizer", [{}, {"ADAM": "1"}])
def test_a_job_continues_from_a_save_of_its_servers(tmp_path, optimizer):
    """With the optimizer state and the learning rate that it had."""
    at_once, _ = launch_well(tmp_path, TRAIN, "sync", "fleet", 6, **optimizer)
    launch_well(tmp_path, TRAIN, "sync", "fleet", 3, SAVE="1", **optimizer)
    again, _ = launch_well(tmp_path, TRAIN, "sync", "fleet", 3, MODEL="model", FIRST="3", **optimizer)
    for one, other in zip(at_once, again):
        np.testing.assert_array_equal(one["losses"][3:], other["losses"])
    assert not (tmp_path / "model" / "__pserver_state__").exists()


@pytest.mark.parametrize("strategy", ["async", "half_async", "geo"])
def test_servers_save_their_state_while_others_train(tmp_path, strategy):
    launch_well(tmp_path, TRAIN, strategy, "fleet", 20, SAVE="1", ADAM="1")
    saved = {path.name for path in (tmp_path / "model").iterdir()}
    assert {"table", "fc_0.w_0", "fc_0.b_0"} <= saved
    if strategy != "geo":  # its servers only add up
        assert {"fc_0.w_0_moment1_0", "table_moment2_0", "fc_0.b_0_beta1_pow_acc_0", "@LR_DECAY_COUNTER@"} <= saved
        rows = np.frombuffer((tmp_path / "model" / "table_moment1_0").read_bytes()[-4 * 2000 * 16 :], "float32")
        assert np.isfinite(rows).all() and np.any(rows)
    launch_well(tmp_path, TRAIN, strategy, "fleet", 2, MODEL="model", ADAM="1")


def test_a_missing_model_is_an_error_of_the_servers(tmp_path):
    code, said, logs = launch(tmp_path, TRAIN, "sync", "fleet", 1, MODEL="nowhere")
    assert code != 0 and "there is no folder nowhere" in said + "".join(logs.values())


GENERAL = """
    import sys
    import penstock.fluid as fluid
    from penstock.fluid.incubate.fleet.base import role_maker
    role = role_maker.GeneralRoleMaker(path='meeting')
    role.generate_role()
    print('gathered', role.all_gather(role.worker_index() + (100 if role.is_server() else 0)))
    role.barrier_all()
"""


def test_servers_and_trainers_meet_through_files(tmp_path):
    code, said, logs = launch(tmp_path, GENERAL, workers=3)
    assert code == 0, said
    assert len(logs) == 5
    for name, text in logs.items():
        assert "gathered [0, 1, 2, 100, 101]" in text, (name, text)
