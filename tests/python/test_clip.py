"""Gradient clipping in both spellings, and error clipping within the backward pass."""

import numpy as np
import pytest


def net(fluid):
    """Two parameters whose gradients are known: the mean over a batch of x, times 3."""
    x = fluid.data("x", [None, 2])
    weight = fluid.ParamAttr(name="w", initializer=fluid.initializer.Constant(1.0))
    return fluid.layers.scale(fluid.layers.mean(fluid.layers.fc(x, 1, param_attr=weight, bias_attr="b")), 3.0)


def step(fluid, x):
    """w and b after one step from 1 and 0."""
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(fluid.default_startup_program())
    exe.run(feed={"x": np.array(x, "float32")})
    return [np.array(fluid.global_scope().find_var(name).get_tensor()).ravel() for name in ("w", "b")]


# The gradients are w: [3, 4] * 3 = [9, 12] and b: 3.
X = [[3.0, 4.0]]


CLIPS = [
    (lambda clip: clip.GradientClipByValue(max=10.0), [9, 10], [3]),
    (lambda clip: clip.GradientClipByValue(max=10.0, min=9.5), [9.5, 10], [9.5]),
    (lambda clip: clip.GradientClipByNorm(5.0), [3, 4], [3]),
    (lambda clip: clip.GradientClipByGlobalNorm(np.sqrt(9.0**2 + 12**2 + 3**2) / 2), [4.5, 6], [1.5]),
    (lambda clip: clip.GradientClipByGlobalNorm(1000.0), [9, 12], [3]),
]
CLIPS_OF_SOME = [
    (lambda clip: clip.GradientClipByNorm(5.0, need_clip=lambda param: param.name == "b"), [9, 12], [3]),
    (lambda clip: clip.GradientClipByGlobalNorm(1.0, need_clip=lambda param: param.name == "b"), [9, 12], [1]),
    (lambda clip: clip.GradientClipByValue(1.0, need_clip=lambda param: False), [9, 12], [3]),
]


@pytest.mark.parametrize("make, w, b", CLIPS + CLIPS_OF_SOME)
def test_an_optimizer_clips_gradients(fluid, make, w, b):
    loss = net(fluid)
    fluid.optimizer.SGD(1.0, grad_clip=make(fluid.clip)).minimize(loss)
    expect_step(fluid, w, b)


@pytest.mark.parametrize("make, w, b", CLIPS)
def test_gradients_of_marked_parameters_are_clipped(fluid, make, w, b):
    loss = net(fluid)
    fluid.clip.set_gradient_clip(make(fluid.clip))
    fluid.optimizer.SGD(1.0).minimize(loss)
    expect_step(fluid, w, b)


def expect_step(fluid, w, b):
    got_w, got_b = step(fluid, X)
    assert np.allclose(got_w, 1 - np.array(w), rtol=1e-6) and np.allclose(got_b, -np.array(b), rtol=1e-6)


def test_only_marked_parameters_are_clipped(fluid):
    loss = net(fluid)
    fluid.clip.set_gradient_clip(fluid.clip.GradientClipByGlobalNorm(1.0), param_list=["b"])
    fluid.optimizer.SGD(1.0).minimize(loss)
    w, b = step(fluid, X)
    assert np.allclose(w, [1 - 9, 1 - 12]) and np.allclose(b, [-1])


def test_an_optimizers_own_clip_wins(fluid):
    loss = net(fluid)
    fluid.clip.set_gradient_clip(fluid.clip.GradientClipByValue(0.25))
    fluid.optimizer.SGD(1.0, grad_clip=fluid.clip.GradientClipByValue(1.0)).minimize(loss)
    assert np.allclose(step(fluid, X)[1], [-1])


def test_clipping_precedes_regularization(fluid):
    loss = net(fluid)
    fluid.optimizer.SGD(
        1.0, regularization=fluid.regularizer.L2Decay(0.5), grad_clip=fluid.clip.GradientClipByValue(2.0)
    ).minimize(loss)
    assert np.allclose(step(fluid, X)[0], 1 - (2 + 0.5))


def test_clip_ops_name_their_parameter(fluid):
    loss = net(fluid)
    _, pairs = fluid.optimizer.Momentum(0.1, 0.9, grad_clip=fluid.clip.GradientClipByGlobalNorm(1.0)).minimize(loss)
    assert [(param.name, grad.name) for param, grad in pairs] == [("w", "w@GRAD"), ("b", "b@GRAD")]
    ops = fluid.default_main_program().global_block().ops
    clips = [op for op in ops if op.all_attrs().get("op_namescope", "").startswith("/gradient_clip")]
    assert {tuple(op.attr("op_role_var")) for op in clips} == {
        ("b", "elementwise_mul_0.tmp_0"),
        ("w", "elementwise_mul_1.tmp_0"),
    }
    assert {op.attr("op_role") for op in clips} == {2}


def clip_ops(fluid):
    """(scope, type, parameter) of each op that clips."""
    ops = fluid.default_main_program().global_block().ops
    return [
        (op.attr("op_namescope").strip("/"), op.type, " ".join(op.attr("op_role_var")))
        for op in ops
        if "CLIP" in op.all_attrs().get("op_namescope", "")
    ]


def test_global_norm_clipping_appends_fluids_ops(fluid):
    loss = net(fluid)
    fluid.clip.set_gradient_clip(fluid.clip.GradientClipByGlobalNorm(1.0))
    fluid.optimizer.SGD(1.0).minimize(loss)
    assert clip_ops(fluid) == [
        ("gradient_clip_@CLIP", "fill_constant", "b elementwise_mul_0.tmp_0"),
        ("gradient_clip_@CLIP", "square", "b elementwise_mul_0.tmp_0"),
        ("gradient_clip_@CLIP", "reduce_sum", "b elementwise_mul_0.tmp_0"),
        ("gradient_clip_@CLIP_1", "square", "w elementwise_mul_1.tmp_0"),
        ("gradient_clip_@CLIP_1", "reduce_sum", "w elementwise_mul_1.tmp_0"),
        ("graident_clip_@CLIP", "sum", "b b@GRAD"),
        ("graident_clip_@CLIP", "sqrt", "b b@GRAD"),
        ("graident_clip_@CLIP", "elementwise_max", "b b@GRAD"),
        ("graident_clip_@CLIP", "elementwise_div", "b b@GRAD"),
        ("graident_clip_@CLIP", "elementwise_mul", "b b@GRAD"),
        ("graident_clip_@CLIP_1", "elementwise_mul", "w w@GRAD"),
    ]


def test_clip_by_norm_reads_the_original_gradient(fluid):
    loss = net(fluid)
    fluid.clip.set_gradient_clip(fluid.clip.GradientClipByNorm(1.0))
    fluid.optimizer.SGD(1.0).minimize(loss)
    assert clip_ops(fluid) == [
        ("graident_clip_@CLIP", "clip_by_norm", "b b@GRAD"),
        ("graident_clip_@CLIP_1", "clip_by_norm", "w w@GRAD"),
    ]


@pytest.mark.parametrize(
    "give", [lambda var, clip: setattr(var, "error_clip", clip), lambda var, clip: var._set_error_clip(clip)]
)
def test_error_clip_applies_at_the_gradient_op(fluid, give):
    x = fluid.data("x", [None, 2])
    hidden = fluid.layers.fc(
        x, 2, param_attr=fluid.ParamAttr(initializer=fluid.initializer.Constant(1.0)), bias_attr="b"
    )
    give(hidden, fluid.clip.ErrorClipByValue(max=0.5))
    loss = fluid.layers.scale(fluid.layers.mean(hidden), 6.0)
    fluid.optimizer.SGD(1.0).minimize(loss)
    ops = fluid.default_main_program().global_block().ops
    clip = next(i for i, op in enumerate(ops) if op.type == "clip")
    assert ops[clip].input("X") == ops[clip].output("Out") == [hidden.grad_name]
    assert hidden.grad_name in ops[clip - 1].output_arg_names and ops[clip].attr("op_role") == 1
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(fluid.default_startup_program())
    exe.run(feed={"x": np.ones((1, 2), "float32")})
    # 6 / 2 without clipping
    assert np.allclose(np.array(fluid.global_scope().find_var("b").get_tensor()), -0.5)


def test_a_callback_clips_errors(fluid):
    x = fluid.data("x", [None, 2])
    x.stop_gradient = False
    hidden = fluid.layers.scale(x, 1.0)
    loss = fluid.layers.mean(fluid.layers.scale(hidden, 6.0))
    hidden._set_error_clip(fluid.clip.ErrorClipByValue(max=0.5))
    fluid.backward.append_backward(loss, callbacks=[fluid.clip.error_clip_callback])
    kinds = [op.type for op in loss.block.ops]
    assert kinds[3:] == ["fill_constant", "mean_grad", "scale", "clip", "scale"]
    exe = fluid.Executor(fluid.CPUPlace())
    fed = {"x": np.ones((1, 2), "float32")}
    assert exe.run(feed=fed, fetch_list=[hidden.grad_name, "x@GRAD"])[1].tolist() == [[0.5, 0.5]]  # 3 without
    hidden.error_clip = "no clip"
    with pytest.raises(TypeError, match="must be an instance of BaseErrorClipAttr, not str"):
        fluid.backward.append_backward(loss, callbacks=[fluid.clip.error_clip_callback])


@pytest.mark.parametrize(
    "wrong, error, says",
    [
        (lambda fluid: fluid.optimizer.SGD(0.1, grad_clip=5.0), TypeError, "must be a GradientClipByValue"),
        (lambda fluid: fluid.clip.set_gradient_clip("norm"), TypeError, "must be a GradientClipByValue"),
        (lambda fluid: fluid.clip.GradientClipByValue(-1.0), ValueError, "above 0"),
        (lambda fluid: fluid.clip.GradientClipByNorm(1.0, need_clip="w"), TypeError, "function of a parameter"),
        (lambda fluid: fluid.clip.set_gradient_clip(fluid.clip.GradientClipByNorm(1.0), [3]), TypeError, "Parameters"),
    ],
)
def test_invalid_clips_are_refused(fluid, wrong, error, says):
    with pytest.raises(error, match=says):
        wrong(fluid)


def test_a_clip_group_has_one_norm(fluid):
    loss = net(fluid)
    fluid.clip.set_gradient_clip(fluid.clip.GradientClipByGlobalNorm(1.0), ["w"])
    fluid.clip.set_gradient_clip(fluid.clip.GradientClipByGlobalNorm(2.0), ["b"])
    with pytest.raises(ValueError, match="group default_group must have one clip_norm; .* has .*, another"):
        fluid.optimizer.SGD(1.0).minimize(loss)


def test_set_gradient_clip_after_minimize_warns(fluid):
    fluid.optimizer.SGD(1.0).minimize(net(fluid))
    with pytest.warns(UserWarning, match="no effect on existing ops") as told:
        fluid.clip.set_gradient_clip(fluid.clip.GradientClipByNorm(1.0))
    assert told[0].filename == __file__


@pytest.mark.parametrize("make", [case[0] for case in CLIPS + CLIPS_OF_SOME])
def test_parameters_without_a_gradient_are_skipped(fluid, make):
    """backward() gives None for a parameter on which the loss does not depend."""
    loss = net(fluid)
    idle = fluid.layers.create_parameter([2], "float32", name="idle")
    optimizer = fluid.optimizer.SGD(1.0)
    pairs = optimizer.backward(loss)
    names = [param.name for param, _ in pairs]
    clipped = make(fluid.clip)(pairs + [(idle, None)])
    assert [param.name for param, _ in clipped] == names
    fluid.clip.set_gradient_clip(make(fluid.clip), [idle])
    assert [param.name for param, _ in fluid.clip.append_gradient_clip_ops(pairs + [(idle, None)])] == names
