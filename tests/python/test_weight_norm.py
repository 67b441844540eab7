"""WeightNormParamAttr: a parameter has the usual initial value, and its direction and length are trained separately."""

import numpy as np
import pytest


def value(fluid, name):
    return np.array(fluid.global_scope().find_var(name).get_tensor())


@pytest.mark.parametrize("dim", [None, 0, 1])
def test_weight_norm_trains_direction_and_length(fluid, dim):
    start = np.random.RandomState(0).randn(3, 2).astype("float32")
    attr = fluid.WeightNormParamAttr(dim, "w", fluid.initializer.NumpyArrayInitializer(start))
    x = fluid.data("x", [None, 3])
    out = fluid.layers.fc(x, 2, bias_attr=False, param_attr=attr)
    loss = fluid.layers.reduce_sum(fluid.layers.square(out))
    fluid.optimizer.SGD(0.01).minimize(loss)
    exe = fluid.Executor()
    exe.run(fluid.default_startup_program())
    axes = tuple(axis for axis in range(2) if axis != dim)

    def length(v):
        return np.sqrt((v * v).sum(axes, keepdims=True))

    g, v = value(fluid, "w_g"), value(fluid, "w_v")
    np.testing.assert_array_equal(v, start)
    np.testing.assert_allclose(g, length(start), rtol=1e-6)
    feed = np.random.RandomState(1).randn(4, 3).astype("float32")
    (made,) = exe.run(feed={"x": feed}, fetch_list=[out])
    np.testing.assert_allclose(made, feed @ start, rtol=1e-5, atol=1e-6)

    def loss_of(g, v):
        return np.square(feed.astype("float64") @ (g * v / length(v))).sum()

    for name, before in (("w_g", g), ("w_v", v)):
        gradient = np.zeros(before.shape)
        for i in np.ndindex(before.shape):
            up, down = (before.astype("float64") for _ in range(2))
            up[i], down[i] = up[i] + 1e-5, down[i] - 1e-5
            pair = [(g, moved) if name == "w_v" else (moved, v) for moved in (up, down)]
            gradient[i] = (loss_of(*pair[0]) - loss_of(*pair[1])) / 2e-5
        np.testing.assert_allclose(value(fluid, name), before - 0.01 * gradient, rtol=1e-4, atol=1e-5)
    assert [param.name for param in fluid.default_main_program().all_parameters()] == ["w_g", "w_v"]
