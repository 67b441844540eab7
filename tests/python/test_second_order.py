"""Gradients of gradients, compared with explicit derivatives and with central differences of first gradients."""

import numpy as np
import pytest

X = np.random.RandomState(0).uniform(0.5, 2, (3, 4)).astype("float64")
Y = np.random.RandomState(1).uniform(0.5, 2, (3, 4)).astype("float64")


def second(fluid, function, *arrays):
    """The second derivatives for each input, of the sum of the function and its first gradients."""
    inputs = [fluid.data(f"v{i}", list(array.shape), "float64") for i, array in enumerate(arrays)]
    for one in inputs:
        one.stop_gradient = False
    first = fluid.gradients(function(fluid.layers, *inputs), inputs)
    total = sum(fluid.layers.reduce_sum(one * one) for one in first)
    twice = fluid.gradients(total, inputs)
    feed = {one.name: array for one, array in zip(inputs, arrays)}
    run = fluid.Executor().run
    got = run(feed=feed, fetch_list=twice)
    numeric = []
    for at, array in enumerate(arrays):
        grad = np.zeros_like(array)
        for place in np.ndindex(*array.shape):
            ends = []
            for step in (1e-5, -1e-5):
                moved = array.copy()
                moved[place] += step
                ends.append(run(feed={**feed, inputs[at].name: moved}, fetch_list=[total])[0].item())
            grad[place] = (ends[0] - ends[1]) / 2e-5
        numeric.append(grad)
    return got, numeric


FUNCTIONS = {
    "square": (lambda L, x: L.square(x), [X]),
    "a sum of itself by two gradient ops, squared": (lambda L, x: L.square(L.sums([x, x])), [X]),
    "sqrt": (lambda L, x: L.sqrt(x), [X]),
    "relu of squares": (lambda L, x: L.square(L.relu(x - 1.0)), [X]),
    "leaky_relu of squares": (lambda L, x: L.square(L.leaky_relu(x - 1.0, alpha=0.3)), [X]),
    "elu": (lambda L, x: L.elu(x - 1.0, alpha=0.7), [X]),
    "elementwise_add": (lambda L, x, y: L.square(L.elementwise_add(x, y, axis=0)), [X, Y[:, 0]]),
    "elementwise_sub": (lambda L, x, y: L.square(L.elementwise_sub(x, y)), [X, Y[0]]),
    "elementwise_mul": (lambda L, x, y: L.elementwise_mul(x, y, axis=0), [X, Y[:, 0]]),
    "elementwise_div": (lambda L, x, y: L.elementwise_div(x, y), [X, Y]),
    "mul": (lambda L, x, y: L.mul(x, y), [X, Y.T.copy()]),
    "reduce_sum": (lambda L, x: L.square(L.reduce_sum(x, dim=1)), [X]),
    "reduce_mean": (lambda L, x: L.square(L.reduce_mean(x, dim=[0], keep_dim=True)), [X]),
    "expand": (lambda L, x: L.square(L.expand(x, [2, 1])), [X]),
    "slice": (lambda L, x: L.square(L.slice(x, axes=[1], starts=[1], ends=[3])), [X]),
    "reshape": (lambda L, x: L.square(L.reshape(x, [4, 3])), [X]),
}


@pytest.mark.parametrize("function", FUNCTIONS)
def test_second_order_gradients_match_differences(fluid, function):
    made, arrays = FUNCTIONS[function]
    got, numeric = second(fluid, made, *arrays)
    for ours, differences in zip(got, numeric):
        np.testing.assert_allclose(ours, differences, rtol=1e-5, atol=1e-6)


def test_a_gradient_penalty_trains(fluid):
    """As in WGAN-GP: the loss contains the norm of the gradient of a network's output by its input."""
    x = fluid.data("x", [None, 4])
    x.stop_gradient = False
    attr = fluid.ParamAttr(name="w", initializer=fluid.initializer.NumpyArrayInitializer(X.T[:, :1].astype("float32")))
    out = fluid.layers.fc(x, 1, param_attr=attr, bias_attr=False)
    (grad,) = fluid.gradients(out, [x])
    length = fluid.layers.sqrt(fluid.layers.reduce_sum(fluid.layers.square(grad), dim=1))
    loss = fluid.layers.reduce_mean(fluid.layers.square(length - 1.0))
    fluid.optimizer.SGD(0.5).minimize(loss)
    exe = fluid.Executor()
    exe.run(fluid.default_startup_program())
    losses = [exe.run(feed={"x": X.astype("float32")}, fetch_list=[loss])[0].item() for _ in range(30)]
    norm = np.linalg.norm(X.T[:, 0])
    np.testing.assert_allclose(losses[0], (norm - 1) ** 2, rtol=1e-5)
    assert losses[-1] < 1e-6


def test_third_order_gradients_are_refused(fluid):
    x = fluid.data("x", [3], "float64")
    x.stop_gradient = False
    grad = fluid.layers.square(x)
    for _ in range(2):
        (grad,) = fluid.gradients(grad, [x])
    with pytest.raises(Exception, match="square_grad_grad has no gradient"):
        fluid.gradients(fluid.layers.square(grad), [x])
