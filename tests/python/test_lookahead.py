"""LookaheadOptimizer compared with NumPy."""

import numpy
import pytest


def test_slow_weights_move_every_k_steps(fluid):
    start = numpy.array([[1.0], [2.0]], "float32")
    attr = fluid.ParamAttr(name="w", initializer=fluid.initializer.NumpyArrayInitializer(start))
    main, startup = fluid.Program(), fluid.Program()
    with fluid.program_guard(main, startup):
        loss = fluid.layers.mean(fluid.layers.fc(fluid.data("x", [None, 2]), 1, param_attr=attr, bias_attr=False))
    ops, pairs = fluid.optimizer.LookaheadOptimizer(fluid.optimizer.SGD(0.5), alpha=0.25, k=3).minimize(loss, startup)
    assert [op.type for op in ops] == ["sgd"] and pairs[0][0].name == "w"
    exe = fluid.Executor()
    exe.run(startup)
    random = numpy.random.RandomState(4)
    fast, slow = start.ravel().astype("float64"), start.ravel().astype("float64")
    for step in range(1, 8):
        x = random.randn(5, 2).astype("float32")
        exe.run(main, feed={"x": x})
        fast = fast - 0.5 * x.mean(axis=0)
        if step % 3 == 0:
            fast = slow = 0.25 * fast + 0.75 * slow
        scope = fluid.global_scope()
        for name, right in (("w", fast), ("w@SLOW", slow)):
            value = numpy.array(scope.find_var(name).get_tensor()).ravel()
            numpy.testing.assert_allclose(value, right, rtol=1e-5, atol=1e-6)
    assert not any(op.type in ("increment", "conditional_block") for op in main.clone(for_test=True).global_block().ops)
    assert fluid.default_main_program().global_block().ops == []


@pytest.mark.parametrize(
    "options, why",
    [
        ({"inner_optimizer": None}, "inner_optimizer is None"),
        ({"alpha": 1.5}, "alpha must be from 0 to 1, not 1.5"),
        ({"k": 0}, "k must be a positive int, not 0"),
        ({"k": 2.0}, "k must be a positive int, not 2.0"),
    ],
)
def test_invalid_arguments_are_refused(fluid, options, why):
    with pytest.raises(ValueError, match=why):
        fluid.optimizer.LookaheadOptimizer(**{"inner_optimizer": fluid.optimizer.SGD(0.1), **options})
