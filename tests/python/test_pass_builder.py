"""BuildStrategy's passes: the list that scripts change, and those that act."""

import subprocess
import sys
import textwrap

import numpy as np
import pytest


def names(builder):
    return [one.type() for one in builder.all_passes()]


def test_the_pass_list_follows_options_and_is_editable(fluid):
    strategy = fluid.BuildStrategy()
    strategy.fuse_elewise_add_act_ops = True
    builder = strategy._finalize_strategy_and_create_passes()
    assert builder is strategy._finalize_strategy_and_create_passes()
    assert "fuse_elewise_add_act_pass" in names(builder) and "sequential_execution_pass" not in names(builder)
    count = len(names(builder))
    drawn = builder.append_pass("graph_viz_pass")
    assert drawn.type() == "graph_viz_pass" and not drawn.has("graph_viz_path")
    builder.insert_pass(0, "fuse_sgd_op_pass")
    assert names(builder)[0] == "fuse_sgd_op_pass" and len(names(builder)) == count + 2
    builder.remove_pass(0)
    assert len(names(builder)) == count + 1


# Of Fluid 1.8.5 on CPUs, without "_pass".
START = [
    "coalesce_grad_tensor",
    "add_reader_dependency",
    "all_reduce_mode_multi_devices",
    "fuse_all_reduce_op",
    "all_reduce_deps",
    "modify_op_lock_and_record_event",
    "multi_devices_check",
]


@pytest.mark.parametrize(
    "options, passes",
    [
        ({}, START),
        ({"sync_batch_norm": True, "fuse_bn_act_ops": True}, ["sync_batch_norm", "fuse_bn_act"] + START),
        ({"fuse_all_optimizer_ops": True}, START[:1] + ["fuse_adam_op", "fuse_sgd_op", "fuse_momentum_op"] + START[1:]),
        (
            {"num_trainers": 2, "cache_runtime_context": True},
            START[:5] + ["backward_optimizer_op_deps", "runtime_context_cache"] + START[5:],
        ),
        ({"reduce_strategy": "Reduce"}, ["add_reader_dependency", "reduce_mode_multi_devices", *START[5:]]),
        ({"is_distribution": True}, ["add_reader_dependency", "dist_multi_devices", *START[4:]]),
        ({"fuse_all_reduce_ops": False, "remove_unnecessary_lock": False}, [*START[1:3], "all_reduce_deps", START[6]]),
        (
            {"debug_graphviz_path": "x"},
            ["graph_viz", START[0], "graph_viz", *START[1:4], "multi_devices_print", *START[4:]],
        ),
    ],
)
def test_the_passes_of_options_match_fluid(fluid, options, passes):
    strategy = fluid.BuildStrategy()
    for name, value in options.items():
        setattr(strategy, name, fluid.BuildStrategy.ReduceStrategy.Reduce if value == "Reduce" else value)
    assert names(strategy._finalize_strategy_and_create_passes()) == [name + "_pass" for name in passes]


def test_unknown_and_unsupported_passes_are_refused(fluid):
    strategy = fluid.BuildStrategy()
    builder = strategy._finalize_strategy_and_create_passes()
    with pytest.raises(fluid.core.EnforceNotMet, match="no pass 'graph_vis_pass'; did you mean graph_viz.*E-pass-unkn"):
        builder.append_pass("graph_vis_pass")
    with pytest.raises(NotImplementedError, match="conv_bn_fuse_pass is a pass for inference"):
        builder.append_pass("conv_bn_fuse_pass")
    with pytest.raises(fluid.core.EnforceNotMet, match="E-pass-unknown"):
        builder.remove_pass(len(names(builder)))
    with pytest.raises(RuntimeError, match="fuse_bn_act_ops cannot change after.*E-pass-finalized"):
        strategy.fuse_bn_act_ops = True
    strategy.num_trainers = 1  # Fluid lets scripts set it afterwards


def net(fluid, optimizer=None, norm=False, given=None):
    fluid.default_main_program().random_seed = fluid.default_startup_program().random_seed = 5
    x, y = given or (fluid.data("x", [None, 4]), fluid.data("y", [None, 1]))
    hidden = fluid.layers.fc(x, 6, act="tanh")
    if norm:
        hidden = fluid.layers.batch_norm(hidden)
    loss = fluid.layers.mean(fluid.layers.square_error_cost(fluid.layers.fc(hidden, 1), y))
    (optimizer or fluid.optimizer.Momentum(fluid.layers.exponential_decay(0.1, 1, 0.5), 0.9)).minimize(loss)
    return loss


def feed(step, n=4):
    random = np.random.RandomState(step)
    return {"x": random.uniform(-1, 1, (n, 4)).astype("float32"), "y": random.uniform(-1, 1, (n, 1)).astype("float32")}


def merged(fluid, loss, repeats, places=None):
    strategy = fluid.BuildStrategy()
    merge = strategy._finalize_strategy_and_create_passes().insert_pass(0, "multi_batch_merge_pass")
    if repeats is not None:
        merge.set("num_repeats", repeats)
    return fluid.CompiledProgram(fluid.default_main_program()).with_data_parallel(
        loss_name=loss.name, build_strategy=strategy, places=places or [fluid.CPUPlace()]
    )


def params(fluid):
    scope = fluid.global_scope()
    return {
        p.name: np.array(scope.find_var(p.name).get_tensor()) for p in fluid.default_main_program().all_parameters()
    }


def train(fluid, repeats, places=None):
    with (
        fluid.unique_name.guard(),
        fluid.program_guard(fluid.Program(), fluid.Program()),
        fluid.scope_guard(fluid.Scope()),
    ):
        loss = net(fluid)
        exe = fluid.Executor()
        exe.run(fluid.default_startup_program())
        program = merged(fluid, loss, repeats, places) if repeats else fluid.default_main_program()
        ops = len(fluid.default_main_program().global_block().ops)
        losses = [exe.run(program, feed=feed(step), fetch_list=[loss])[0].mean() for step in range(4)]
        assert len(fluid.default_main_program().global_block().ops) == ops  # the user's program stays
        return losses, params(fluid)


def expect_same_training(got, expected):
    """Both are (losses, parameters)."""
    np.testing.assert_allclose(got[0], expected[0], rtol=1e-5)
    for name, value in expected[1].items():
        np.testing.assert_allclose(got[1][name], value, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("repeats", [1, 3])
def test_merged_repetitions_train_like_one_batch(fluid, repeats):
    """The mean of equal gradients is the gradient, and the learning rate decays once a step."""
    expect_same_training(train(fluid, repeats), train(fluid, 0))


def test_places_exchange_the_merged_gradients(fluid):
    expect_same_training(train(fluid, 2, [fluid.CPUPlace()] * 2), train(fluid, 0))


def test_each_repetition_reads_the_next_batch_of_a_reader(fluid):
    """Two batches of 2 examples that are merged train as one batch of 4."""
    whole = [feed(step) for step in range(3)]

    def halves():
        for one in whole:
            for part in (slice(0, 2), slice(2, 4)):
                yield one["x"][part], one["y"][part]

    with (
        fluid.unique_name.guard(),
        fluid.program_guard(fluid.Program(), fluid.Program()),
        fluid.scope_guard(fluid.Scope()),
    ):
        loss = net(fluid)
        exe = fluid.Executor()
        exe.run(fluid.default_startup_program())
        for one in whole:
            exe.run(feed=one)
        right = params(fluid)
    given = fluid.data("x", [None, 4]), fluid.data("y", [None, 1])
    loader = fluid.io.DataLoader.from_generator(given, capacity=4, iterable=False)
    loader.set_batch_generator(halves)
    loss = net(fluid, given=given)
    exe = fluid.Executor()
    exe.run(fluid.default_startup_program())
    program = merged(fluid, loss, 2)
    loader.start()
    steps = 0
    with pytest.raises(fluid.core.EOFException):
        while True:
            exe.run(program, fetch_list=[loss])
            steps += 1
    assert steps == 3
    for name, value in params(fluid).items():
        np.testing.assert_allclose(value, right[name], rtol=1e-5, atol=1e-6)


def test_sparse_gradients_are_merged(fluid):
    ids = fluid.data("ids", [None, 1], "int64")
    table = fluid.layers.embedding(ids, [10, 3], is_sparse=True, param_attr=fluid.ParamAttr("table"))
    loss = fluid.layers.mean(table)
    fluid.optimizer.SGD(0.3).minimize(loss)
    exe = fluid.Executor()
    exe.run(fluid.default_startup_program())
    before = np.array(fluid.global_scope().find_var("table").get_tensor())
    exe.run(merged(fluid, loss, 2), feed={"ids": np.array([[1], [4]])}, fetch_list=[loss])
    moved = before - np.array(fluid.global_scope().find_var("table").get_tensor())
    right = np.zeros((10, 3))
    right[[1, 4]] = 0.3 / 6
    np.testing.assert_allclose(moved, right, atol=1e-6)


def test_repetitions_have_their_own_moments_if_the_program_declares_them(fluid):
    loss = net(fluid, fluid.optimizer.SGD(0.1), norm=True)
    main, startup = fluid.default_main_program().global_block(), fluid.default_startup_program().global_block()
    norm = next(op for op in main.ops if op.type == "batch_norm")
    moments = [norm.input("Mean")[0], norm.input("Variance")[0]]
    for name in moments:  # as Fluid's scripts do
        start = next(op for op in startup.ops if name in op.output_arg_names)
        for repeat in range(2):
            own = startup.create_var(
                name=f"{name}.repeat.{repeat}", shape=main.var(name).shape, dtype="float32", persistable=True
            )
            main._clone_variable(own)
            startup.append_op(type=start.type, inputs={}, outputs={"Out": own}, attrs=start.all_attrs())
    exe = fluid.Executor()
    exe.run(fluid.default_startup_program())
    exe.run(merged(fluid, loss, 2), feed=feed(0), fetch_list=[loss])
    value = {
        name: np.array(fluid.global_scope().find_var(name).get_tensor())
        for one in moments
        for name in (one, one + ".repeat.0", one + ".repeat.1")
    }
    mean = moments[0]
    assert (value[mean] == 0).all() and (value[mean + ".repeat.0"] != 0).any()
    np.testing.assert_array_equal(value[mean + ".repeat.0"], value[mean + ".repeat.1"])


def test_invalid_batch_merges_are_refused(fluid):
    loss = net(fluid)
    exe = fluid.Executor()
    exe.run(fluid.default_startup_program())
    with pytest.raises(fluid.core.EnforceNotMet, match="num_repeats is None.*E-batch-merge"):
        exe.run(merged(fluid, loss, None), feed=feed(0))
    with fluid.program_guard(fluid.Program()):
        fluid.layers.fc(fluid.data("x", [None, 4]), 1)
        with pytest.raises(fluid.core.EnforceNotMet, match="no updates of parameters.*E-batch-merge"):
            exe.run(merged(fluid, loss, 2), feed={"x": feed(0)["x"]})


def test_a_drawing_is_written_at_the_first_run(fluid, tmp_path):
    strategy = fluid.BuildStrategy()
    strategy.debug_graphviz_path = str(tmp_path / "graph")
    strategy._finalize_strategy_and_create_passes()
    y = fluid.layers.scale(fluid.data("x", [2]), 2.0)
    fluid.Executor().run(
        fluid.CompiledProgram(fluid.default_main_program(), strategy), feed={"x": np.ones(2, "float32")}, fetch_list=[y]
    )
    assert "scale" in (tmp_path / "graph_original_graph").read_text()


JOB = """
    import os, sys
    import numpy as np
    import penstock.fluid as fluid
    fluid.default_main_program().random_seed = fluid.default_startup_program().random_seed = 5
    x, y = fluid.data('x', [None, 4]), fluid.data('y', [None, 1])
    hidden = fluid.layers.fc(x, 6, act='tanh')
    loss = fluid.layers.mean(fluid.layers.square_error_cost(fluid.layers.fc(hidden, 1), y))
    fluid.optimizer.Momentum(fluid.layers.exponential_decay(0.1, 1, 0.5), 0.9).minimize(loss)
    exe = fluid.Executor()
    rank = int(os.environ.get('PADDLE_TRAINER_ID', 0))
    strategy = fluid.BuildStrategy()
    strategy._finalize_strategy_and_create_passes().append_pass('multi_batch_merge_pass').set('num_repeats', 2)
    main = fluid.default_main_program()
    if sys.argv[1] == 'pservers':
        t = fluid.DistributeTranspiler()
        t.transpile(rank, pservers=os.environ['PADDLE_PSERVER_ENDPOINTS'], trainers=2)
        if os.environ['TRAINING_ROLE'] == 'PSERVER':
            main, startup = t.get_pserver_programs(os.environ['PADDLE_CURRENT_ENDPOINT'])
            exe.run(startup)
            exe.run(main)
            sys.exit()
        main = t.get_trainer_program()
    else:
        strategy.num_trainers, strategy.trainer_id = 2, rank
    exe.run(fluid.default_startup_program())
    merged = fluid.CompiledProgram(main).with_data_parallel(loss_name=loss.name, build_strategy=strategy)
    for step in range(4):
        random = np.random.RandomState(step)
        xs = random.uniform(-1, 1, (4, 4)).astype('float32')
        ys = random.uniform(-1, 1, (4, 1)).astype('float32')
        mine = slice(2 * rank, 2 * rank + 2)
        exe.run(merged, feed={'x': xs[mine], 'y': ys[mine]}, fetch_list=[loss])
    np.savez('trainer.%d.npz' % rank, **{p.name: np.array(fluid.global_scope().find_var(p.name).get_tensor())
                                         for p in fluid.default_main_program().all_parameters()})
    exe.close()
"""


@pytest.mark.parametrize("servers, way", [("2", "pservers"), ("0", "ranks")])
def test_trainers_merge_before_they_send_or_exchange(fluid, tmp_path, servers, way):
    _, right = train(fluid, 0)
    (tmp_path / "train.py").write_text(textwrap.dedent(JOB))
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "penstock.distributed.launch",
            "--server_num",
            servers,
            "--worker_num",
            "2",
            "train.py",
            way,
        ],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    for rank in range(2):
        got = np.load(tmp_path / (f"trainer.{rank}.npz"))
        for name, value in right.items():
            np.testing.assert_allclose(got[name], value, rtol=1e-5, atol=1e-6)
