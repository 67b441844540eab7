"""fluid.gradients: gradients of any variables with respect to any others."""

import numpy as np
import penstock
import pytest


def data(fluid, name, shape):
    var = fluid.data(name, shape)
    var.stop_gradient = False
    return var


def run(fluid, fetch, **feed):
    feed = {name: np.asarray(value, "float32") for name, value in feed.items()}
    return fluid.Executor().run(feed=feed, fetch_list=fetch)


X = [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]


def test_the_gradient_of_a_tensor_is_that_of_its_sum(fluid):
    x, w = data(fluid, "x", [None, 2]), data(fluid, "w", [None, 2])
    y = fluid.layers.elementwise_mul(fluid.layers.square(x), w)
    dx, dw = fluid.gradients(y, [x, w])
    got = run(fluid, [dx, dw], x=X, w=np.full((3, 2), 3.0))
    np.testing.assert_allclose(got[0], 6 * np.array(X))
    np.testing.assert_allclose(got[1], np.square(X))


def test_targets_are_weighted_by_their_gradients(fluid):
    x, weight = data(fluid, "x", [None, 2]), fluid.data("weight", [None, 2])
    square, thrice = fluid.layers.square(x), fluid.layers.scale(x, 3.0)
    (dx,) = fluid.gradients([square, thrice], x, target_gradients=[weight, None])
    (got,) = run(fluid, [dx], x=X, weight=np.array(X) + 1)
    np.testing.assert_allclose(got, 2 * np.array(X) * (np.array(X) + 1) + 3)


def test_unrelated_inputs_have_no_gradient(fluid):
    x, other = data(fluid, "x", [None, 2]), data(fluid, "other", [None, 2])
    y = fluid.layers.square(x)
    assert fluid.gradients(y, other) == []
    assert fluid.gradients(y, [other, fluid.data("still", [None, 2])]) == [None, None]
    assert fluid.gradients(y, [x, other], no_grad_set=[x]) == [None, None]


def test_gradients_appends_only_ops_on_the_path_to_the_inputs(fluid):
    x = data(fluid, "x", [None, 2])
    middle = fluid.layers.square(x)
    y = fluid.layers.exp(middle)
    fluid.gradients(y, middle)
    assert [op.type for op in fluid.default_main_program().global_block().ops[2:]] == [
        "shape",
        "fill_constant",
        "exp_grad",
    ]


def test_a_second_call_creates_new_gradients(fluid):
    x = data(fluid, "x", [None, 2])
    y = fluid.layers.square(x)
    z = fluid.layers.scale(y, 5.0)
    (first,) = fluid.gradients(y, x)
    (second,) = fluid.gradients(z, x)
    assert first.name != second.name
    got = run(fluid, [first, second], x=X)
    np.testing.assert_allclose(got[0], 2 * np.array(X))
    np.testing.assert_allclose(got[1], 10 * np.array(X))


def test_second_order_gradient_of_x_times_x_counts_both_factors(fluid):
    x = data(fluid, "x", [None, 2])
    y = x * x
    (first,) = fluid.gradients(y, x)
    z = (x + first) * (x + first) + first * y  # 9 x^2 + 2 x^3
    (second,) = fluid.gradients(z, x)
    got = run(fluid, [first, second], x=X)
    np.testing.assert_allclose(got[0], 2 * np.array(X), rtol=1e-6)
    np.testing.assert_allclose(got[1], 18 * np.array(X) + 6 * np.array(X) ** 2, rtol=1e-6)


def test_gradients_of_a_second_loss_have_numbered_names(fluid):
    x = data(fluid, "x", [None, 2])
    hidden = fluid.layers.fc(x, 3, param_attr=fluid.ParamAttr(name="w"), bias_attr=False)
    L = fluid.layers
    losses = [L.mean(hidden), L.mean(L.square(hidden)), L.reduce_sum(hidden)]
    grads = [fluid.backward.append_backward(loss)[0][1] for loss in losses]
    assert [grad.name for grad in grads] == ["w@GRAD", "grad/grad/w@GRAD", "grad/grad/grad/w@GRAD"]
    exe = fluid.Executor()
    exe.run(fluid.default_startup_program())
    got = exe.run(feed={"x": np.array(X, "float32")}, fetch_list=grads + ["w"])
    rows, weight = np.array(X), got[3]
    np.testing.assert_allclose(got[0], rows.T @ np.full((3, 3), 1 / 9), rtol=1e-5)
    np.testing.assert_allclose(got[1], rows.T @ (2 / 9 * rows @ weight), rtol=1e-5)
    np.testing.assert_allclose(got[2], rows.T @ np.ones((3, 3)), rtol=1e-5)


def test_gradients_of_a_loaded_program_have_fresh_names(fluid):
    x = data(fluid, "x", [None, 2])
    loss = fluid.layers.mean(fluid.layers.fc(x, 3, param_attr=fluid.ParamAttr(name="w"), bias_attr=False))
    fluid.backward.append_backward(loss)
    again = fluid.Program.parse_from_string(fluid.default_main_program().desc.serialize_to_string())
    ((_, grad),) = fluid.backward.append_backward(again.global_block().var(loss.name))
    assert grad.name == "w@GRAD_0"


def test_invalid_gradient_arguments_are_refused(fluid):
    x, row = data(fluid, "x", [3, 2]), fluid.data("row", [1, 2])
    y = fluid.layers.square(x)
    z = fluid.layers.scale(y, 5.0)
    for arguments, says in (
        (([y], [x], [row]), "shapes of target .* are different"),
        (([y, z], [x], [row]), "2 targets, but 1 gradients"),
        (([y], []), "no target or no input"),
        (([y], ["nobody"]), "nobody is no tensor of block 0"),
    ):
        with pytest.raises(penstock.ProgramError, match=says):
            fluid.gradients(*arguments)
    with pytest.raises(NotImplementedError, match="another target depends on square_0.tmp_0"):
        fluid.gradients([y, z], x)
    assert [op.type for op in fluid.default_main_program().global_block().ops] == ["square", "scale"]


def test_an_unused_branch_has_no_gradient(fluid):
    """Its output goes only into an op without gradient."""
    layers = fluid.layers
    x = fluid.data("x", [2, 3])
    small = layers.less_than(layers.reduce_sum(x), layers.fill_constant([1], "float32", 0))
    picked = layers.cond(small, lambda: layers.fc(x, 3, param_attr="inside"), lambda: layers.scale(x, 2.0))
    place = layers.cast(layers.argmax(picked, -1), "float32")
    output = layers.fc(x, 1, param_attr="w", bias_attr=False)
    loss = layers.mean(layers.elementwise_mul(output, layers.unsqueeze(place, [1])))
    _, pairs = fluid.optimizer.Adam(0.1).minimize(loss)
    assert [param.name for param, _ in pairs] == ["w"]
    assert not any(op.type == "conditional_block_grad" for op in fluid.default_main_program().global_block().ops)


def test_an_unused_rnn_has_no_gradient(fluid):
    """Of gru_unit, only the first output has a gradient. The array of the RNN's outputs gets no zeros."""
    layers = fluid.layers
    sequence, state = fluid.data("sequence", [None, 4], lod_level=1), fluid.data("state", [None, 4])
    rnn = layers.DynamicRNN()
    with rnn.block():
        word, memory = rnn.step_input(sequence), rnn.memory(shape=[4], value=0.0)
        hidden = layers.fc([word, memory], 4)
        rnn.update_memory(memory, hidden)
        rnn.output(hidden)
    _, reset, _ = layers.gru_unit(layers.fc(layers.sequence_last_step(rnn()), 12), state, 12)
    loss = layers.mean(layers.fc(reset, 1, param_attr="w", bias_attr=False))
    _, pairs = fluid.optimizer.SGD(0.1).minimize(loss)
    assert [param.name for param, _ in pairs] == ["w"]
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(fluid.default_startup_program())
    rows = fluid.create_lod_tensor(np.ones((5, 4), "float32"), [[2, 3]], fluid.CPUPlace())
    (got,) = exe.run(feed={"sequence": rows, "state": np.ones((2, 4), "float32")}, fetch_list=[loss])
    assert np.isfinite(got).all()
