"""Operators of Variables: the ops that x + 1, x < y and x[1:] add to a program, and their values."""

import numpy as np
import pytest

X = np.array([[1, 2, 3], [4, 5, 6]], "float32")


def ops_of(fluid):
    return [op.type for op in fluid.default_main_program().global_block().ops]


def run(fluid, feed, *fetch):
    return fluid.Executor().run(feed=feed, fetch_list=list(fetch))


@pytest.mark.parametrize(
    "make, ops",
    [
        (lambda x: x + 1, ["scale"]),
        (lambda x: x + True, ["scale"]),
        (lambda x: x + np.float32(2), ["fill_constant", "elementwise_add"]),
        (lambda x: np.float32(2) + x, ["scale"]),
        (lambda x: x / 4, ["scale"]),
        (lambda x: 4 / x, ["fill_constant_batch_size_like", "elementwise_div"]),
        (lambda x: x**2, ["fill_constant", "elementwise_pow"]),
        (lambda x: 2**x, ["fill_constant_batch_size_like", "elementwise_pow"]),
        (lambda x: x > 2, ["fill_constant", "greater_than"]),
        (lambda x: x != 5, ["fill_constant", "not_equal"]),
    ],
)
def test_a_number_operand_becomes_scale_or_a_constant(fluid, make, ops):
    x = fluid.data("x", [None, 3])
    out = make(x)
    assert ops_of(fluid) == ops
    np.testing.assert_allclose(run(fluid, {"x": X}, out)[0], make(X), rtol=1e-6)


@pytest.mark.parametrize(
    "make, ops",
    [
        (lambda x: x * 2.0, ["scale"]),
        (lambda x: x / 2, ["fill_constant", "elementwise_div"]),
        (lambda x: x // 2, ["fill_constant", "elementwise_floordiv"]),
        (lambda x: x % 3, ["fill_constant", "elementwise_mod"]),
    ],
)
def test_integers_stay_integers(fluid, make, ops):
    whole = X.astype("int64")
    out = make(fluid.data("x", [None, 3], "int64"))
    assert ops_of(fluid) == ops and out.dtype.name == "INT64"
    np.testing.assert_array_equal(run(fluid, {"x": whole}, out)[0], np.trunc(make(whole)))


@pytest.mark.parametrize("make", [lambda x: x * 2.5, lambda x: x < 1.5, lambda x: 0.5 - x])
def test_fractional_operands_convert_integers_to_floats(fluid, make):
    out = make(fluid.data("x", [None, 3], "int64"))
    np.testing.assert_allclose(run(fluid, {"x": X.astype("int64")}, out)[0], make(X))


def test_a_left_constant_has_the_known_shape(fluid):
    out = 2 ** fluid.data("x", [2, 3])
    constant = fluid.default_main_program().global_block().ops[0]
    assert constant.type == "fill_constant" and constant.attr("shape") == [2, 3]
    np.testing.assert_allclose(run(fluid, {"x": X}, out)[0], 2**X)


def test_operands_are_cast_to_the_left_type(fluid):
    x, n = fluid.data("x", [None, 3]), fluid.data("n", [None, 3], "int64")
    out = n + x
    assert out.dtype.name == "INT64" and ops_of(fluid) == ["cast", "elementwise_add"] and out.name == "tmp_1"
    assert x.astype("float64").name == "tmp_2"


def test_array_operands_are_refused(fluid):
    x = fluid.data("x", [None, 3])
    row = np.ones(3, "float32")
    for make in (lambda: x * row, lambda: row * x, lambda: x + [1], lambda: x + "a"):
        with pytest.raises(TypeError):
            make()
    with pytest.raises(TypeError, match="not iterable"):
        list(x)


@pytest.mark.parametrize(
    "take",
    [
        lambda x: x[0],
        lambda x: x[-1],
        lambda x: x[1, 2],
        lambda x: x[:, 1],
        lambda x: x[:, -1],
        lambda x: x[:, :2],
        lambda x: x[0:2, 1:3],
        lambda x: x[:, -2:],
        lambda x: x[1:100],
        lambda x: x[np.int64(1)],
    ],
)
def test_a_subscript_is_one_slice_op(fluid, take):
    out = take(fluid.data("x", [None, 3]))
    assert ops_of(fluid) == ["slice"] and out.name == "x_slice_0"
    np.testing.assert_array_equal(run(fluid, {"x": X}, out)[0].ravel(), np.ravel(take(X)))


@pytest.mark.parametrize(
    "take",
    [
        lambda x: x[::2],
        lambda x: x[0:5:2],
        lambda x: x[1::2, 1],
        lambda x: x[4:1:-1],
        lambda x: x[3::-2],
        lambda x: x[::-2],
        lambda x: x[:, 2:0:-1],
        lambda x: x[-1:-4:-1, ::2],
    ],
)
def test_a_subscript_with_a_step_is_one_strided_slice_op(fluid, take):
    values = np.arange(15, dtype="float32").reshape(5, 3)
    out = take(fluid.data("x", [5, 3]))
    assert ops_of(fluid) == ["strided_slice"] and out.name == "x_strided_slice_0"
    assert out.shape == take(values).shape
    np.testing.assert_array_equal(run(fluid, {"x": values}, out)[0], take(values))


@pytest.mark.parametrize(
    "take, ops",
    [
        (lambda x: x[::-1], ["reverse"]),
        (lambda x: x[::-1, ::-1], ["reverse"]),
        (lambda x: x[:, ::-1], ["reverse"]),
        (lambda x: x[1, ::-1], ["slice", "reverse"]),
        (lambda x: x[0:5:2, ::-1], ["strided_slice", "reverse"]),
    ],
)
def test_reversing_a_whole_axis_uses_reverse(fluid, take, ops):
    values = np.arange(15, dtype="float32").reshape(5, 3)
    out = take(fluid.data("x", [5, 3]))
    assert ops_of(fluid) == ops and out.name == "x_slice_reverse_0"
    np.testing.assert_array_equal(run(fluid, {"x": values}, out)[0], take(values))


def test_a_step_may_be_a_variable(fluid):
    x, i = fluid.data("x", [None, 3]), fluid.data("i", [1], "int32")
    columns, rows = x[:, 0:3:i], x[::i]
    assert ops_of(fluid) == ["strided_slice", "strided_slice"]
    got = run(fluid, {"x": X, "i": np.array([2], "int32")}, columns, rows)
    np.testing.assert_array_equal(got[0], X[:, ::2])
    np.testing.assert_array_equal(got[1], X[::2])


def test_a_full_slice_returns_the_variable(fluid):
    x = fluid.data("x", [None, 3])
    assert x[:] is x and x[:, :] is x and x[::1] is x


@pytest.mark.parametrize("dtype", ["int32", "int64"])
def test_a_subscript_may_be_a_variable(fluid, dtype):
    x, i = fluid.data("x", [None, 3]), fluid.data("i", [1], dtype)
    i.stop_gradient = False
    row, head, cell = x[i], x[:, 0:i], x[i, 2]
    assert i.stop_gradient
    after = ["fill_constant", "elementwise_add"]  # where a part of one element ends
    assert ops_of(fluid) == after + ["slice"] + ["slice"] + after + ["fill_constant", "fill_constant", "slice"]
    got = run(fluid, {"x": X, "i": np.array([1], dtype)}, row, head, cell)
    np.testing.assert_array_equal(got[0].ravel(), X[1])
    np.testing.assert_array_equal(got[1], X[:, :1])
    np.testing.assert_array_equal(got[2].ravel(), X[1, 2:])


@pytest.mark.parametrize("dtype", ["float32", "bool"])
def test_a_zero_step_is_refused(fluid, dtype):
    x, i = fluid.data("x", [None, 3]), fluid.data("i", [1], dtype)
    for take in (lambda: x[i], lambda: x[i:], lambda: x[0:2:i]):
        with pytest.raises(TypeError, match=rf"x\[i\]: a Variable .* must be int32 or int64, not {dtype}"):
            take()


def test_a_subscript_has_a_gradient(fluid):
    x = fluid.data("x", [2, 3])
    x.stop_gradient = False
    (grad,) = fluid.gradients([fluid.layers.reduce_sum(x[1, 1:])], [x])
    np.testing.assert_array_equal(run(fluid, {"x": X}, grad)[0], [[0, 0, 0], [0, 1, 1]])


@pytest.mark.parametrize(
    "subscript, error, says",
    [
        (slice(None, 1, 0), ValueError, "strides holds 0 for extent 0"),
        (slice(None, None, 0.5), TypeError, "must be an int, a slice or a Variable"),
        (Ellipsis, TypeError, "must be an int, a slice or a Variable"),
        (1.5, TypeError, "must be an int, a slice or a Variable"),
        ("a", TypeError, "must be an int, a slice or a Variable"),
        ((0, 0, 0), IndexError, "x has 2 axes, but the subscript needs axis 2"),
    ],
)
def test_a_wrong_subscript_is_reported(fluid, subscript, error, says):
    with pytest.raises(error, match=says):
        fluid.data("x", [None, 3])[subscript]
