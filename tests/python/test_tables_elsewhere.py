"""Tables on pservers in programs that were not transpiled: evaluation through every way to run a program, saved models,
and files that one machine loads. All numbers are those of one machine."""

import os
import textwrap

import numpy as np
import pytest
from fleet_jobs import launch_well

# `test` is cloned before the transpile; net() can build it again.
NET = """
    import os
    import sys
    import numpy as np
    import penstock.fluid as fluid

    L = fluid.layers
    KIND, TRAINER = sys.argv[1], int(os.environ.get('PADDLE_TRAINER_ID', '0'))
    FEED = {'a': np.arange(6).reshape(6, 1) % 5, 'b': np.arange(12).reshape(6, 2) % 7 * 3,
            'y': np.arange(6).reshape(6, 1) * 3}
    fluid.default_main_program().random_seed = fluid.default_startup_program().random_seed = 11


    def net():
        a, b, y = L.data('a', [1], dtype='int64'), fluid.data('b', [None, 2], 'int64'), L.data('y', [1], dtype='int64')
        table = dict(is_sparse=True, is_distributed=KIND == 'distributed')
        once = L.embedding(a, [40, 6], param_attr='emb', **table)
        again = L.embedding(y, [40, 6], param_attr='emb', padding_idx=3, **table)
        wide = L.reshape(fluid.embedding(b, [30, 3], param_attr='wide', **table), [-1, 6])
        hidden = L.fc([once, again, wide], 8, act='tanh', param_attr=['w0', 'w1', 'w2'], bias_attr='w3')
        cost = L.mean(L.nce(hidden, y, 40, num_neg_samples=5, seed=7, is_sparse=True, param_attr='classes',
                            bias_attr='class_bias'))
        return cost + L.mean(hidden), hidden, wide


    loss, hidden, wide = net()
    test = fluid.default_main_program().clone(for_test=True)
    exe = fluid.Executor(fluid.CPUPlace())
"""

TRAIN = (
    NET
    + """
    from job_script import launched_program_of
    fluid.optimizer.Momentum(0.5, 0.9).minimize(loss)
    t = fluid.DistributeTranspiler()
    t.transpile(TRAINER, pservers=os.environ['PADDLE_PSERVERS_IP_PORT_LIST'], trainers=2)
    program = launched_program_of(exe, t)
    exe.run(fluid.default_startup_program())
    got = {'one': exe.run(test, feed={'b': FEED['b']}, fetch_list=[wide], use_prune=True)[0]}    # of the tables
    got['start'] = exe.run(test, feed=FEED, fetch_list=[hidden])[0]    # before any gradient
    for _ in range(3):
        exe.run(program, feed=FEED)


    class Take(fluid.executor.FetchHandler):
        def handler(self, res_dict):
            got['dataset'] = np.array(res_dict['hidden'])


    def dataset(of):
        with open('part-%d' % TRAINER, 'w') as part:
            for row in range(6):
                part.write('1 %d 2 %d %d 1 %d\\n' % (*FEED['a'][row], *FEED['b'][row], *FEED['y'][row]))
        dataset = fluid.DatasetFactory().create_dataset('QueueDataset')
        dataset.set_use_var([of.global_block().var(name) for name in 'aby'])
        dataset.set_batch_size(6)
        dataset.set_pipe_command('cat')
        dataset.set_filelist(['part-%d' % TRAINER])
        return dataset


    def run(program, name):
        got[name] = exe.run(program, feed=FEED, fetch_list=[hidden.name])[0]


    run(test, 'executor')
    run(fluid.CompiledProgram(test), 'compiled')
    run(fluid.CompiledProgram(test).with_data_parallel(places=fluid.cpu_places(1)), 'place')
    run(fluid.CompiledProgram(test).with_data_parallel(places=fluid.cpu_places(2)), 'places')
    parallel = fluid.ParallelExecutor(use_cuda=False, main_program=test)
    got['parallel'] = np.array(parallel.run([hidden.name], FEED)[0])
    exe.infer_from_dataset(test, dataset(test), fetch_handler=Take({'hidden': hidden}, 0))
    got['pruned'] = exe.run(test, feed=FEED, fetch_list=[hidden], use_prune=True)[0]
    second = fluid.Program()
    with fluid.program_guard(second, fluid.Program()), fluid.unique_name.guard():
        cost, out, _ = net()
    got['second'], got['cost'] = exe.run(second, feed=FEED, fetch_list=[out, cost])
    got['test cost'] = exe.run(test, feed=FEED, fetch_list=[loss])[0]
    np.savez('worker%d.npz' % TRAINER, **got)
    if TRAINER == 0:
        fluid.io.save_inference_model('of_trainer', ['a', 'b', 'y'], [hidden], exe)
        fluid.io.save_inference_model('of_test', ['a', 'b', 'y'], [hidden], exe, test)
        fluid.io.save_inference_model('in_one_file', ['a', 'b', 'y'], [hidden], exe, test, params_filename='all')
        fluid.io.save_persistables(exe, 'vars', program)
        fluid.io.save_params(exe, 'params', program)
        fluid.io.save_params(exe, 'test_params', test)
        fluid.save(program, 'state')
    exe.close()
"""
)


FLEET = (
    NET
    + """
    from job_script import start_worker
    from penstock.fluid.incubate.fleet.base import role_maker
    from penstock.fluid.incubate.fleet.parameter_server.distribute_transpiler import StrategyFactory, fleet

    fleet.init(role_maker.PaddleCloudRoleMaker())
    optimizer = fluid.optimizer.Momentum(0.5, 0.9)
    fleet.distributed_optimizer(optimizer, StrategyFactory.create_sync_strategy()).minimize(loss)
    start_worker(fleet, exe)
    for _ in range(3):
        exe.run(fleet.main_program, feed=FEED)
    got = exe.run(test, feed=FEED, fetch_list=[hidden])[0]
    np.savez('worker%d.npz' % TRAINER, got=got)
    if fleet.is_first_worker():
        fleet.save_inference_model(exe, 'model', ['a', 'b', 'y'], [hidden])
        fleet.save_inference_model(exe, 'test_model', ['a', 'b', 'y'], [hidden], test)
        fleet.save_persistables(exe, 'vars')
    fleet.stop_worker()
"""
)


def one_machine(fluid, kind, monkeypatch):
    """Trains the same network alone; returns (what the test program gave before, after, all parameters, the names in
    NET)."""
    monkeypatch.setattr("sys.argv", ["net", kind])
    names = {}
    exec(textwrap.dedent(NET), names)
    exe = names["exe"]
    fluid.optimizer.Momentum(0.5, 0.9).minimize(names["loss"])
    exe.run(fluid.default_startup_program())

    def test():
        return exe.run(names["test"], feed=names["FEED"], fetch_list=[names["hidden"], names["loss"], names["wide"]])

    start = test()
    for _ in range(3):
        exe.run(feed=names["FEED"])
    params = {
        p.name: np.array(fluid.global_scope().find_var(p.name).get_tensor())
        for p in fluid.default_main_program().all_parameters()
    }
    return start, test(), params, names


def close(got, want, name):
    np.testing.assert_allclose(got, want, rtol=2e-5, atol=2e-6, err_msg=name)


@pytest.mark.parametrize("kind", ["sparse", "distributed"])
def test_untranspiled_programs_read_the_tables(tmp_path, kind, fluid, monkeypatch):
    workers, _ = launch_well(tmp_path, TRAIN, kind)
    start, end, params, names = one_machine(fluid, kind, monkeypatch)
    for worker in workers:
        close(worker.pop("start"), start[0], "start")
        close(worker.pop("one"), start[2], "one table")
        close(worker.pop("cost"), end[1], "cost")
        close(worker.pop("test cost"), end[1], "test cost")
        assert len(worker) == 8
        for name, value in worker.items():
            close(value, end[0], name)
    exe = names["exe"]
    for folder, file in (("of_trainer", None), ("of_test", None), ("in_one_file", "all")):
        with fluid.scope_guard(fluid.Scope()):
            program, feeds, fetches = fluid.io.load_inference_model(str(tmp_path / folder), exe, params_filename=file)
            assert feeds == ["a", "b", "y"]
            close(exe.run(program, feed=names["FEED"], fetch_list=fetches)[0], end[0], folder)
    for folder, load in (
        ("vars", fluid.io.load_persistables),
        ("params", fluid.io.load_params),
        ("test_params", fluid.io.load_params),
    ):
        with fluid.scope_guard(fluid.Scope()):
            exe.run(fluid.default_startup_program())
            load(exe, str(tmp_path / folder), names["test"])
            for name, value in params.items():
                close(np.array(fluid.global_scope().find_var(name).get_tensor()), value, f"{name} of {folder}")
    state = fluid.io.load_program_state(str(tmp_path / "state"))
    for name, value in params.items():
        close(state[name], value, name)
    assert os.path.isdir(tmp_path / "vars" / "__lookup_table__") == (kind == "distributed")


@pytest.mark.parametrize("kind", ["sparse", "distributed"])
def test_one_machine_reads_the_folders_of_a_fleet(tmp_path, kind, fluid, monkeypatch):
    workers, _ = launch_well(tmp_path, FLEET, kind)
    _, end, params, names = one_machine(fluid, kind, monkeypatch)
    for worker in workers:
        close(worker["got"], end[0], "the test program on a trainer")
    exe = names["exe"]
    for folder in ("model", "test_model"):
        with fluid.scope_guard(fluid.Scope()):
            program, _, fetches = fluid.io.load_inference_model(str(tmp_path / folder), exe)
            close(exe.run(program, feed=names["FEED"], fetch_list=fetches)[0], end[0], folder)
    with fluid.scope_guard(fluid.Scope()):
        exe.run(fluid.default_startup_program())
        fluid.io.load_persistables(exe, str(tmp_path / "vars"), names["test"])
        for name, value in params.items():
            close(np.array(fluid.global_scope().find_var(name).get_tensor()), value, name)


def test_a_padding_idx_unknown_to_training_is_refused(fluid):
    def net(padding):
        ids = fluid.data("ids", [None, 1], "int64")
        rows = fluid.layers.embedding(ids, [40, 6], True, True, padding, param_attr="emb")
        return fluid.layers.mean(fluid.layers.fc(rows, 1))

    fluid.optimizer.SGD(0.1).minimize(net(3))
    transpiler = fluid.DistributeTranspiler()
    transpiler.transpile(0, pservers="10.0.0.1:6174,10.0.0.2:6174", trainers=2)
    transpiler.get_trainer_program()
    other, start = fluid.Program(), fluid.Program()
    with fluid.program_guard(other, start), fluid.unique_name.guard():
        loss = net(5)
    fluid.global_scope().var("emb").get_selected_rows()  # without rows, as on a trainer
    with pytest.raises(
        ValueError,
        match="emb is looked up with padding_idx 5, but the program that trains it looks it "
        "up with 3   .E-table-padding",
    ):
        fluid.Executor().run(other, feed={"ids": np.zeros((2, 1), "int64")}, fetch_list=[loss])
    fluid.Executor().run(start)  # the table is here now
    fluid.Executor().run(other, feed={"ids": np.zeros((2, 1), "int64")}, fetch_list=[loss])


def test_sampling_a_table_sharded_by_id_is_refused(fluid):
    ids = fluid.data("ids", [None, 1], "int64")
    rows = fluid.layers.embedding(ids, [40, 6], True, True, param_attr="emb")
    fluid.optimizer.SGD(0.1).minimize(fluid.layers.mean(rows))
    transpiler = fluid.DistributeTranspiler()
    transpiler.transpile(0, pservers="10.0.0.1:6174,10.0.0.2:6174", trainers=2)
    transpiler.get_trainer_program()
    with fluid.program_guard(fluid.Program(), fluid.Program()), fluid.unique_name.guard():
        x, label = fluid.data("x", [None, 6]), fluid.data("label", [None, 1], "int64")
        cost = fluid.layers.nce(x, label, 40, param_attr="emb", bias_attr=False)
        other = fluid.default_main_program()
    fluid.global_scope().var("emb").get_selected_rows()  # without rows, as on a trainer
    with pytest.raises(ValueError, match="emb is sharded by id, so nce cannot request its rows.*   .E-table-sampler"):
        fluid.Executor().run(
            other, feed={"x": np.ones((2, 6), "float32"), "label": np.zeros((2, 1), "int64")}, fetch_list=[cost]
        )


def test_untrained_rows_of_sharded_tables_need_the_startup_program(tmp_path, fluid, monkeypatch):
    launch_well(tmp_path, TRAIN, "distributed")
    *_, names = one_machine(fluid, "distributed", monkeypatch)
    with fluid.scope_guard(fluid.Scope()):
        with pytest.raises(ValueError, match="only the rows of table emb that were trained; run the startup program"):
            fluid.io.load_persistables(names["exe"], str(tmp_path / "vars"), names["test"])
