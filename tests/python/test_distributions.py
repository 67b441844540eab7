"""Distributions build Fluid's ops in Fluid's order, and compute what their formulas say."""

import numpy as np
import pytest

CASES = {
    "normal entropy": (
        lambda L, a, b, c, d, v: L.Normal(a, b).entropy(),
        "elementwise_add elementwise_add fill_constant_batch_size_like elementwise_add log scale",
    ),
    "normal density": (
        lambda L, a, b, c, d, v: L.Normal(a, b).log_prob(v),
        "elementwise_mul log elementwise_sub elementwise_sub elementwise_mul scale scale elementwise_div "
        "elementwise_sub scale",
    ),
    "normal divergence": (
        lambda L, a, b, c, d, v: L.Normal(a, b).kl_divergence(L.Normal(c, d)),
        "elementwise_div elementwise_mul elementwise_sub elementwise_div elementwise_mul elementwise_add scale log "
        "elementwise_sub scale",
    ),
    "uniform density": (
        lambda L, a, b, c, d, v: L.Uniform(a, b).log_prob(v),
        "less_than less_than cast cast elementwise_mul log elementwise_sub log elementwise_sub",
    ),
    "categorical divergence": (
        lambda L, a, b, c, d, v: L.Categorical(a).kl_divergence(L.Categorical(b)),
        "reduce_max elementwise_sub reduce_max elementwise_sub exp exp reduce_sum reduce_sum elementwise_div log "
        "elementwise_sub elementwise_sub log elementwise_add elementwise_mul reduce_sum",
    ),
    "categorical entropy": (
        lambda L, a, b, c, d, v: L.Categorical(a).entropy(),
        "reduce_max elementwise_sub exp reduce_sum elementwise_div log elementwise_sub elementwise_mul reduce_sum "
        "scale",
    ),
}


@pytest.mark.parametrize("name", sorted(CASES))
def test_distributions_append_fluids_ops(fluid, name):
    build, ops = CASES[name]
    build(fluid.layers, *(fluid.data(key, [None, 4]) for key in "abcdv"))
    assert " ".join(op.type for op in fluid.default_main_program().global_block().ops) == ops


def test_the_divergence_of_vectors_has_fluids_ops_and_its_value(fluid):
    inverse = "fill_constant fill_constant diag scale elementwise_sub elementwise_pow"
    determinant = "fill_constant fill_constant diag elementwise_add elementwise_sub reduce_prod log"
    a, b = (fluid.layers.MultivariateNormalDiag(fluid.data("l" + n, [2]), fluid.data("s" + n, [2, 2])) for n in "ab")
    apart = a.kl_divergence(b)
    assert " ".join(op.type for op in fluid.default_main_program().global_block().ops) == " ".join(
        [
            inverse,
            "elementwise_mul reduce_sum elementwise_sub",
            inverse,
            "matmul elementwise_sub matmul",
            determinant,
            determinant,
            "elementwise_sub elementwise_add scale elementwise_add scale",
        ]
    )
    feed = {"la": [0.3, 0.5], "sa": np.diag([0.4, 0.5]), "lb": [0.2, 0.4], "sb": np.diag([0.3, 0.4])}
    (got,) = fluid.Executor().run(feed={k: np.array(v, "float32") for k, v in feed.items()}, fetch_list=[apart])
    np.testing.assert_allclose(got, [0.06542051], rtol=1e-5)  # the value in Fluid's documentation


def test_samples_of_constant_bounds_lie_between_them(fluid):
    numbers = fluid.layers.Uniform([2.0, 5.0], [3.0, 9.0]).sample([500], seed=3)
    (got,) = fluid.Executor().run(fetch_list=[numbers])
    assert (got >= [2.0, 5.0]).all() and (got < [3.0, 9.0]).all() and got.min(0)[1] < 5.2 and got.max(0)[1] > 8.8


def test_one_hot_takes_a_gradient_as_fluids_does(fluid):
    rows = fluid.one_hot(fluid.data("i", [None, 2], "int64"), 5)
    assert not rows.stop_gradient
    fluid.optimizer.SGD(0.1).minimize(fluid.layers.mean(fluid.layers.fc(rows, 3)))
    (grad,) = (op for op in fluid.default_main_program().global_block().ops if op.type == "mul_grad")
    assert grad.output("X@GRAD") == [rows.name + "@GRAD"]


def test_extents_given_as_numbers_are_static(fluid):
    x = fluid.data("x", [None, 4, 6])
    size = fluid.layers.fill_constant([1], "int32", 3)
    assert fluid.layers.crop_tensor(x, shape=[-1, 2, size], offsets=[0, 0, 0]).shape == (-1, 2, -1)
