"""DGCMomentumOptimizer: momentum whose gradients are exchanged sparsely after a warm-up."""

import numpy
import penstock
import pytest


def build(fluid, **arguments):
    x = fluid.data("x", [None, 200])
    hidden = fluid.layers.fc(x, 100, param_attr="w", bias_attr="b")
    loss = fluid.layers.mean(fluid.layers.square(hidden))
    arguments = dict(dict(learning_rate=0.01, momentum=0.9, rampup_begin_step=2), **arguments)
    fluid.optimizer.DGCMomentumOptimizer(**arguments).minimize(loss)
    return loss


def types(program, block=0):
    return [op.type for op in program.block(block).ops]


def op_of(program, type):
    return [op for op in program.global_block().ops if op.type == type][0]


def train(fluid, loss, steps):
    executor = fluid.Executor(fluid.CPUPlace())
    executor.run(fluid.default_startup_program())
    fetched = []
    for step in range(steps):
        x = numpy.random.RandomState(step).rand(8, 200).astype("float32")
        fetched.append(executor.run(feed={"x": x}, fetch_list=[loss, "w@GRAD", "w", "b"]))
    return fetched


def test_only_large_gradients_are_compressed(fluid):
    build(fluid)
    main = fluid.default_main_program()
    assert types(main).count("dgc") == 1 and types(main)[0] == "increment"
    assert [op.type for op in main.global_block().ops if op.input("Velocity")] == ["momentum", "dgc_momentum"]
    dgc = op_of(main, "dgc")
    assert dgc.attr("op_role_var") == ["w", "w@GRAD"] and dgc.output("Grad_out") == ["w@GRAD"]
    others = [op for op in main.global_block().ops if op.type == "mul_grad"]
    assert all("w" not in (op.attr("op_role_var") if op.has_attr("op_role_var") else []) for op in others)


def test_a_parameter_without_a_gradient_is_not_updated(fluid):
    x = fluid.data("x", [None, 200])
    loss = fluid.layers.mean(fluid.layers.fc(x, 100, param_attr="w", bias_attr="b"))
    optimizer = fluid.optimizer.DGCMomentumOptimizer(0.01, 0.9, 2)
    pairs = [(param, None if param.name == "w" else grad) for param, grad in optimizer.backward(loss)]
    updates = [op for op in optimizer.apply_gradients(pairs) if op.input("Param")]
    assert [op.input("Param") for op in updates] == [["b"]]


def test_dgc_is_momentum_before_ramp_up_and_sparse_after(fluid):
    fluid.default_startup_program().random_seed = 1
    compressed = train(fluid, build(fluid, sparsity=[0.75]), 4)
    with fluid.program_guard(fluid.Program(), fluid.Program()), fluid.unique_name.guard():
        fluid.default_startup_program().random_seed = 1
        x = fluid.data("x", [None, 200])
        hidden = fluid.layers.fc(x, 100, param_attr="w", bias_attr="b")
        loss = fluid.layers.mean(fluid.layers.square(hidden))
        fluid.optimizer.Momentum(0.01, 0.9).minimize(loss)
        with fluid.scope_guard(fluid.Scope()):
            plain = train(fluid, loss, 4)
    for step in range(2):
        for ours, theirs in zip(compressed[step], plain[step]):
            assert numpy.array_equal(ours, theirs), step
    for step in (2, 3):
        gradient = compressed[step][1]
        assert numpy.count_nonzero(gradient) == gradient.size // 4
        moved = compressed[step - 1][2] - compressed[step][2]
        assert numpy.allclose(moved, 0.01 * gradient, atol=1e-7)


def test_dgc_ops_clip_and_regularize(fluid):
    clip = fluid.clip.GradientClipByNorm(1.0)
    build(fluid, grad_clip=clip, num_trainers=4, regularization=fluid.regularizer.L2Decay(0.1))
    main = fluid.default_main_program()
    dgc = op_of(main, "dgc")
    assert (dgc.attr("regular_type"), dgc.attr("regular_coeff")) == (2, pytest.approx(0.1))
    assert op_of(main, "dgc_clip_by_norm").attr("max_norm") == 0.5
    assert types(main).count("clip_by_norm") == 1, "that of the bias"


@pytest.mark.parametrize(
    "arguments, says",
    [
        (dict(rampup_begin_step=-1), "rampup_begin_step must be at least 0, not -1"),
        (dict(grad_clip="value", num_trainers=2), "clips by GradientClipByNorm only, not by GradientClipByValue"),
        (dict(grad_clip="norm"), "num_trainers must be an int of at least 1, not None"),
    ],
)
def test_invalid_dgc_arguments_are_refused(fluid, arguments, says):
    kinds = dict(value=fluid.clip.GradientClipByValue, norm=fluid.clip.GradientClipByNorm)
    if "grad_clip" in arguments:
        arguments = dict(arguments, grad_clip=kinds[arguments["grad_clip"]](1.0))
    with pytest.raises((TypeError, ValueError), match=says):
        build(fluid, **arguments)


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"sync_mode": False},
        {"mode": "nccl2"},
        {"mode": "collective", "collective_mode": "grad_allreduce"},
        {"mode": "collective", "collective_mode": "local_sgd"},
    ],
)
def test_every_transpiler_mode_supports_dgc(fluid, fields):
    build(fluid)
    config = fluid.DistributeTranspilerConfig()
    for field, value in fields.items():
        setattr(config, field, value)
    t = fluid.DistributeTranspiler(config)
    if "mode" in fields:
        t.transpile(0, trainers="10.0.0.1:6170,10.0.0.2:6170", current_endpoint="10.0.0.1:6170")
        assert "dgc" in types(fluid.default_main_program())
        return
    t.transpile(0, pservers="10.0.0.1:6174,10.0.0.2:6174", trainers=2)
    trainer = types(t.get_trainer_program(wait_port=False))
    assert trainer.index("dgc") < trainer.index("send") or "dgc_momentum" not in trainer
    updates = [
        types(main, block)
        for main, _ in map(t.get_pserver_programs, t.pserver_endpoints)
        for block in range(1, main.num_blocks)
    ]
    assert any("dgc_momentum" in ops for ops in updates)
    assert any("increment" in ops or "sum" in ops for ops in updates), "the count of steps goes with the update"


def test_native_transpile_supports_dgc(fluid):
    build(fluid)
    main, startup = fluid.default_main_program(), fluid.default_startup_program()
    roles = penstock.transpile(main, startup, ["a:1", "b:1"], trainers=2)
    assert any(
        "dgc_momentum" in types(role.main, block)
        for role in roles.pservers.values()
        for block in range(1, role.main.num_blocks)
    )
