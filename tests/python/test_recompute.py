"""Recomputation: gradients from recomputed values are the same, with less memory."""

import numpy
import pytest


def run_steps(fluid, build, checkpoints, steps=4):
    """Losses and parameters after some steps, and the bytes planned, of a training with these checkpoints."""
    main, startup = fluid.Program(), fluid.Program()
    main.random_seed = startup.random_seed = 11
    with fluid.program_guard(main, startup), fluid.unique_name.guard(), fluid.scope_guard(fluid.Scope()):
        loss, kept = build(fluid)
        optimizer = fluid.optimizer.Momentum(0.05, 0.9)
        if checkpoints:
            optimizer = fluid.optimizer.RecomputeOptimizer(optimizer)
            optimizer._set_checkpoints(kept)
        optimizer.minimize(loss)
        exe = fluid.Executor()
        exe.run(startup)
        random = numpy.random.RandomState(2)
        losses = []
        for _ in range(steps):
            feed = {"x": random.randn(16, 3, 8, 8).astype("float32"), "y": random.randn(16, 1).astype("float32")}
            losses.append(exe.run(main, feed=feed, fetch_list=[loss])[0].tobytes())
        names = sorted(var.name for var in main.list_vars() if var.persistable and "SLOW" not in var.name)
        values = {
            name: fluid.global_scope().find_var(name).get_tensor().numpy().tobytes()
            if hasattr(fluid.global_scope().find_var(name).get_tensor(), "numpy")
            else numpy.array(fluid.global_scope().find_var(name).get_tensor()).tobytes()
            for name in names
        }
        return losses, values, fluid.contrib.memory_usage(main, 16), main


def deep(fluid):
    x, y = fluid.data("x", [None, 3, 8, 8]), fluid.data("y", [None, 1])
    hidden, kept = fluid.layers.fc(x, 64, act="relu"), []
    for number in range(12):
        hidden = fluid.layers.tanh(fluid.layers.fc(hidden, 64, act="relu"))
        if number % 4 == 3:
            kept.append(hidden)
    return fluid.layers.mean(fluid.layers.square_error_cost(fluid.layers.fc(hidden, 1), y)), kept


def convolutions(fluid):
    x, y = fluid.data("x", [None, 3, 8, 8]), fluid.data("y", [None, 1])
    kept = []
    for number in range(4):
        x = fluid.layers.conv2d(x, 8, 3, padding=1, bias_attr=False)
        x = fluid.layers.dropout(
            fluid.layers.relu(fluid.layers.batch_norm(x)), 0.3, dropout_implementation="upscale_in_train"
        )
        kept += [x] if number % 2 else []
    return fluid.layers.mean(fluid.layers.square_error_cost(fluid.layers.fc(x, 1), y)), kept


def branches(fluid):
    """A variable that two segments read, an overwritten variable, a value after the last checkpoint."""
    x, y = fluid.data("x", [None, 3, 8, 8]), fluid.data("y", [None, 1])
    first = fluid.layers.relu(fluid.layers.fc(x, 16))
    second = fluid.layers.tanh(fluid.layers.fc(first, 16))
    count = fluid.layers.autoincreased_step_counter()
    scale = fluid.layers.cast(count, "float32")
    third = fluid.layers.elementwise_mul(fluid.layers.fc(second, 16, act="sigmoid"), scale, axis=0)
    parts = fluid.layers.split(third + first, 2, dim=1)
    out = fluid.layers.concat([fluid.layers.relu(parts[0]), parts[1] * 0.5], axis=1)
    return fluid.layers.mean(fluid.layers.square_error_cost(fluid.layers.fc(out, 1), y)), [second, third]


def test_recompute_layouts_agree_within_rounding(fluid):
    """Ops that run twice weigh twice in the choice of layouts, so sums over images may have another order."""
    losses, values, _, _ = run_steps(fluid, convolutions, checkpoints=False)
    again_losses, again_values, _, _ = run_steps(fluid, convolutions, checkpoints=True)
    for mine, theirs in [*zip(again_losses, losses), *((again_values[name], values[name]) for name in values)]:
        mine, theirs = numpy.frombuffer(mine, "float32"), numpy.frombuffer(theirs, "float32")
        numpy.testing.assert_allclose(mine, theirs, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("build", [deep, convolutions, branches])
def test_recompute_trains_to_the_same_bytes(fluid, monkeypatch, build):
    monkeypatch.setenv("PENSTOCK_LAYOUTS", "plain")
    losses, values, _, plain = run_steps(fluid, build, checkpoints=False)
    again_losses, again_values, _, again = run_steps(fluid, build, checkpoints=True)
    assert losses == again_losses and values == again_values
    types = [op.type for op in again.global_block().ops]
    assert len(types) > len(plain.global_block().ops)
    assert types.count("dropout") == (4 if build is convolutions else 0)  # random: it does not run again


def test_recompute_needs_less_memory(fluid):
    # With this batch, activations take more memory than the gradients of the weights.
    plain, again = (
        fluid.contrib.memory_usage(run_steps(fluid, deep, checkpoints=checkpoints, steps=1)[3], 256)
        for checkpoints in (False, True)
    )
    assert plain[2] == again[2] and again[0] < 0.9 * plain[0]


def ops_of(program):
    return [f"{op.type} -> {', '.join(op.output_arg_names)}" for op in program.global_block().ops]


def test_recomputed_ops_precede_the_gradients_that_need_them(fluid):
    x = fluid.data("x", [None, 4])
    first = fluid.layers.fc(x, 3, act="relu", bias_attr=False)
    second = fluid.layers.fc(first, 2, act="tanh", bias_attr=False)
    loss = fluid.layers.mean(second)
    pairs = fluid.backward.append_backward(loss, checkpoints=[second])
    block = fluid.default_main_program().global_block()
    added = ops_of(fluid.default_main_program())[5:]
    assert added == [
        "fill_constant -> mean_0.tmp_0@GRAD",
        "mean_grad -> fc_1.tmp_1@GRAD",
        "tanh_grad -> fc_1.tmp_0@GRAD",
        "mul -> fc_0.tmp_0.subprog_0",
        "relu -> fc_0.tmp_1.subprog_0",
        "mul_grad -> fc_0.tmp_1@GRAD, fc_1.w_0@GRAD",
        "relu_grad -> fc_0.tmp_0@GRAD",
        "mul_grad -> fc_0.w_0@GRAD",
    ]
    assert [op.attr("op_role") for op in block.ops[5:]] == [257] + [1] * 7
    assert block.ops[11].input("Out") == ["fc_0.tmp_1.subprog_0"] and block.var("fc_0.tmp_1.subprog_0").shape == (-1, 3)
    assert [grad.name for _, grad in pairs] == ["fc_0.w_0@GRAD", "fc_1.w_0@GRAD"]
    test = fluid.default_main_program().clone(for_test=True)
    assert not any("subprog" in name for name in ops_of(test))


def test_checkpoints_may_be_names_and_must_exist(fluid):
    x = fluid.data("x", [None, 4])
    hidden = fluid.layers.fc(x, 3, act="relu")
    loss = fluid.layers.mean(fluid.layers.fc(hidden, 1))
    before = ops_of(fluid.default_main_program())
    with pytest.raises(ValueError, match="checkpoint y is no variable of block 0.*E-backward-checkpoint"):
        fluid.backward.append_backward(loss, checkpoints=["y"])
    assert ops_of(fluid.default_main_program()) == before
    optimizer = fluid.optimizer.RecomputeOptimizer(fluid.optimizer.SGD(0.1))
    with pytest.raises(RuntimeError, match="no checkpoints are set   .*E-recompute-checkpoints"):
        optimizer.minimize(loss)
    with pytest.raises(TypeError, match="takes an Optimizer, not 3"):
        fluid.optimizer.RecomputeOptimizer(3)
    with pytest.raises(NotImplementedError, match="by fluid.load"):
        optimizer.load({})
    optimizer._set_checkpoints([hidden.name, "x"])  # feeds are always kept
    ops, pairs = optimizer.minimize(loss)
    assert len(pairs) == 4 and {op.type for op in ops} == {"sgd"}
    assert any("subprog" in name for name in ops_of(fluid.default_main_program()))


def test_clipping_and_decay_are_unaffected_by_recompute(fluid):

    def weights(recompute):
        main, startup = fluid.Program(), fluid.Program()
        startup.random_seed = 3
        with fluid.program_guard(main, startup), fluid.unique_name.guard(), fluid.scope_guard(fluid.Scope()):
            hidden = fluid.layers.fc(fluid.data("x", [None, 4]), 3, act="relu")
            loss = fluid.layers.mean(fluid.layers.fc(hidden, 1))
            optimizer = fluid.optimizer.Adam(
                0.1, regularization=fluid.regularizer.L2Decay(0.1), grad_clip=fluid.clip.GradientClipByGlobalNorm(0.01)
            )
            if recompute:
                optimizer = fluid.optimizer.RecomputeOptimizer(optimizer)
                optimizer._set_checkpoints([hidden])
            optimizer.minimize(loss)
            exe = fluid.Executor()
            exe.run(startup)
            return exe.run(main, feed={"x": numpy.ones((2, 4), "float32")}, fetch_list=["fc_0.w_0"])[0].tolist()

    assert weights(True) == weights(False)
