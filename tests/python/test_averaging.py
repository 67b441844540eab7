"""Averages of parameters are computed during training, applied to the parameters, and restored."""

import numpy as np
import pytest


def value(fluid, name):
    return np.array(fluid.global_scope().find_var(name).get_tensor())


@pytest.fixture
def net(fluid):
    x = fluid.data("x", [None, 2])
    loss = fluid.layers.mean(fluid.layers.fc(x, 1, bias_attr=False, param_attr=fluid.ParamAttr(name="w")))
    fluid.optimizer.SGD(0.5).minimize(loss)
    return loss


def test_the_exponential_average_follows_each_step(fluid, net):
    average = fluid.optimizer.ExponentialMovingAverage(0.9)
    average.update()
    exe = fluid.Executor()
    exe.run(fluid.default_startup_program())
    expected = np.zeros((2, 1))
    for _ in range(3):
        exe.run(feed={"x": np.ones((4, 2), "float32")}, fetch_list=[net])
        expected = 0.9 * expected + 0.1 * value(fluid, "w")
    np.testing.assert_allclose(value(fluid, "w_ema_0"), expected, rtol=1e-5, atol=1e-7)
    assert value(fluid, "@EMA_STEP_COUNTER@").tolist() == [3]
    trained = value(fluid, "w")
    with average.apply(exe):
        np.testing.assert_allclose(value(fluid, "w"), expected / (1 - 0.9**3), rtol=1e-5, atol=1e-7)
    np.testing.assert_array_equal(value(fluid, "w"), trained)
    with average.apply(exe, need_restore=False):
        pass
    np.testing.assert_allclose(value(fluid, "w"), expected / (1 - 0.9**3), rtol=1e-5, atol=1e-7)
    average.restore(exe)
    np.testing.assert_array_equal(value(fluid, "w"), trained)


def test_the_decay_grows_with_a_counter_of_steps(fluid, net):
    steps = fluid.layers.autoincreased_step_counter(begin=0)
    average = fluid.optimizer.ExponentialMovingAverage(0.3, thres_steps=steps)
    average.update()
    exe = fluid.Executor()
    exe.run(fluid.default_startup_program())
    for step in range(5):
        exe.run(feed={"x": np.ones((4, 2), "float32")}, fetch_list=[net])
        decay = min(0.3, (1 + step) / (10 + step))
        np.testing.assert_allclose(value(fluid, "scheduled_ema_decay_rate"), decay, rtol=1e-6)


def test_the_model_average_is_the_mean_over_its_window(fluid, net):
    average = fluid.optimizer.ModelAverage(1.0, min_average_window=2, max_average_window=4)
    exe = fluid.Executor()
    exe.run(fluid.default_startup_program())
    seen = []
    for _ in range(3):
        exe.run(feed={"x": np.ones((4, 2), "float32")}, fetch_list=[net])
        seen.append(value(fluid, "w"))
    with average.apply(exe):
        np.testing.assert_allclose(value(fluid, "w"), np.mean(seen, axis=0), rtol=1e-5, atol=1e-7)
    np.testing.assert_array_equal(value(fluid, "w"), seen[-1])
    with average.apply(exe, need_restore=False):
        pass
    np.testing.assert_allclose(value(fluid, "w"), np.mean(seen, axis=0), rtol=1e-5, atol=1e-7)
    average.restore(exe)
    np.testing.assert_array_equal(value(fluid, "w"), seen[-1])
