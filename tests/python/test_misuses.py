"""Wrong settings, extents, rows, rates and names are errors when they are given."""

import math

import numpy as np
import penstock
import pytest

PSERVERS = "127.0.0.1:6174,127.0.0.1:6175"


def loss_of(fluid):
    x, y = fluid.data("x", [None, 4]), fluid.data("y", [None, 1])
    return fluid.layers.mean(fluid.layers.square_error_cost(fluid.layers.fc(x, 1), y))


def refused(call, id, match):
    with pytest.raises(penstock.ProgramError, match=match) as caught:
        call()
    assert caught.value.id == id


# Transpile.
def test_transpile_before_minimize_is_refused(fluid):
    loss = loss_of(fluid)
    refused(
        lambda: fluid.DistributeTranspiler().transpile(0, pservers=PSERVERS, trainers=2),
        "E-plan-no-params",
        "the program updates no parameter; call minimize before transpile",
    )
    fluid.backward.append_backward(loss)
    with pytest.raises(penstock.ProgramError):
        fluid.DistributeTranspiler().transpile(0, pservers=PSERVERS, trainers=2)
    refused(lambda: penstock.transpile(fluid.Program(), fluid.Program(), PSERVERS), "E-plan-no-params", "call minimize")


@pytest.mark.parametrize(
    "field, near",
    [
        ("slice_var_upp", "slice_var_up"),
        ("sync_mod", "sync_mode"),
        ("min_blocksize", "min_block_size"),
        ("geo_sgd_push_nums", "geo_sgd"),
        ("Mode", "mode"),
    ],
)
def test_an_unknown_config_field_is_refused(fluid, field, near):
    config = fluid.DistributeTranspilerConfig()
    refused(
        lambda: setattr(config, field, False),
        "E-plan-config",
        f"DistributeTranspilerConfig has no field {field}; did you mean {near}",
    )

    class Own(fluid.DistributeTranspilerConfig):
        def __init__(self):
            self.mine = 3

    assert Own().mine == 3


@pytest.mark.parametrize(
    "addresses",
    [
        "localhost:6174,127.0.0.1:6174",
        "127.0.0.1:6174,LocalHost:6174",
        "ps0:6174,PS0:6174",
        "127.0.0.1:6174,127.0.0.1:06174",
    ],
)
def test_duplicate_addresses_in_two_spellings_are_refused(fluid, addresses):
    fluid.optimizer.SGD(0.1).minimize(loss_of(fluid))
    first, second = addresses.split(",")
    refused(
        lambda: fluid.DistributeTranspiler().transpile(0, pservers=addresses, trainers=2),
        "E-plan-pserver-dup",
        f'pserver addresses "{first}" and "{second}" are the same',
    )
    config = fluid.DistributeTranspilerConfig()
    config.mode = "nccl2"
    refused(
        lambda: fluid.DistributeTranspiler(config).transpile(0, trainers=addresses, current_endpoint=first),
        "E-plan-rank-dup",
        f'trainers 0 and 1 have one address, "{first}" and "{second}"',
    )
    other = "localhost:6174,127.0.0.1:6175"
    fluid.DistributeTranspiler().transpile(0, pservers=other, trainers=2)


# Rows of tables.
@pytest.mark.parametrize("row", [10, 99, -11, 2**40, 1.5, "a"])
def test_an_out_of_range_padding_idx_is_refused(fluid, row):
    ids = fluid.data("ids", [None, 1], "int64")
    for layer in (fluid.embedding, fluid.layers.embedding, fluid.contrib.layers.fused_embedding_seq_pool):
        refused(
            lambda: layer(ids, [10, 4], padding_idx=row),
            "E-padding-idx",
            "padding_idx must be a row of the table, from -10 to 9, not",
        )


@pytest.mark.parametrize("row, stored", [(None, -1), (-1, 9), (0, 0), (9, 9), (-10, 0)])
def test_valid_padding_idx_values_are_stored(fluid, row, stored):
    ids = fluid.data("ids", [None, 1], "int64")
    out = fluid.embedding(ids, [10, 4], padding_idx=row)
    assert out.block.ops[-1].attr("padding_idx") == stored


# Rates.
@pytest.mark.parametrize("rate", [math.nan, math.inf, -math.inf])
def test_learning_rates_must_be_finite(fluid, rate):
    optimizers, layers = fluid.optimizer, fluid.layers
    for call in (
        lambda: optimizers.SGD(rate),
        lambda: optimizers.Momentum(rate, 0.9),
        lambda: optimizers.Momentum(0.1, rate),
        lambda: optimizers.Adam(rate),
        lambda: optimizers.Adam(0.1, epsilon=rate),
        lambda: optimizers.Ftrl(0.1, l1=rate),
        lambda: optimizers.LarsMomentum(0.1, 0.9, lars_coeff=rate),
        lambda: optimizers.Dpsgd(0.1, clip=rate),
        lambda: optimizers.DGCMomentumOptimizer(0.1, rate, 1),
        lambda: fluid.regularizer.L2Decay(rate),
        lambda: fluid.regularizer.L1Decay(rate),
        lambda: fluid.ParamAttr(learning_rate=rate),
        lambda: layers.exponential_decay(rate, 10, 0.5),
        lambda: layers.natural_exp_decay(0.1, 10, rate),
        lambda: layers.piecewise_decay([10], [0.1, rate]),
        lambda: layers.cosine_decay(rate, 10, 10),
        lambda: layers.linear_lr_warmup(0.1, 10, rate, 0.1),
        lambda: fluid.initializer.Normal(0.0, rate),
        lambda: fluid.initializer.TruncatedNormal(rate),
        lambda: fluid.initializer.Uniform(rate, rate),
    ):
        refused(call, "E-hyperparameter", f"must be finite, not {rate!r}")


@pytest.mark.parametrize("steps", [0, -5, 0.0])
def test_a_schedule_period_must_be_positive(fluid, steps):
    layers = fluid.layers
    for name, call in (
        ("decay_steps", lambda: layers.exponential_decay(0.1, steps, 0.5)),
        ("decay_steps", lambda: layers.natural_exp_decay(0.1, decay_steps=steps, decay_rate=0.5)),
        ("decay_steps", lambda: layers.inverse_time_decay(0.1, steps, 0.5)),
        ("decay_steps", lambda: layers.polynomial_decay(0.1, steps)),
        ("d_model", lambda: layers.noam_decay(steps, 10)),
        ("warmup_steps", lambda: layers.noam_decay(512, steps)),
        ("step_each_epoch", lambda: layers.cosine_decay(0.1, steps, 10)),
        ("epochs", lambda: layers.cosine_decay(0.1, 10, steps)),
        ("warmup_steps", lambda: layers.linear_lr_warmup(0.1, steps, 0.0, 0.1)),
    ):
        refused(call, "E-hyperparameter", f"{name} must be above 0, not {steps!r}")
    refused(
        lambda: layers.piecewise_decay([10, 5], [0.1, 0.2, 0.3]),
        "E-hyperparameter",
        "boundaries must ascend, but 5 comes after 10",
    )
    layers.piecewise_decay([0, 0, 5], [0.4, 0.1, 0.2, 0.3])


@pytest.mark.parametrize("beta", [2, 1.0, -0.1, math.nan])
def test_decay_rates_must_be_from_0_to_below_1(fluid, beta):
    optimizers = fluid.optimizer
    for call in (
        lambda: optimizers.Adam(0.1, beta1=beta),
        lambda: optimizers.Adam(0.1, beta2=beta),
        lambda: optimizers.Adamax(0.1, beta1=beta),
        lambda: optimizers.Lamb(0.1, beta2=beta),
        lambda: optimizers.Adadelta(0.1, rho=beta),
        lambda: optimizers.RMSProp(0.1, rho=beta),
        lambda: optimizers.DecayedAdagrad(0.1, decay=beta),
    ):
        refused(call, "E-hyperparameter", "must be at least 0 and below 1, not")


@pytest.mark.parametrize("norm", [math.nan, -1.0])
def test_invalid_clip_bounds_are_refused(fluid, norm):
    for call in (lambda: fluid.clip.GradientClipByNorm(norm), lambda: fluid.clip.GradientClipByGlobalNorm(norm)):
        refused(call, "E-hyperparameter", "clip_norm must be at least 0")
    refused(lambda: fluid.clip.GradientClipByValue(math.nan, -1.0), "E-hyperparameter", "min must be at most max")
    refused(lambda: fluid.clip.GradientClipByValue(-1.0, 1.0), "E-hyperparameter", "min must be at most max")


# Extents and names.
@pytest.mark.parametrize("shape", [[-5], [2, -2], [2**40, 2**40], [2**62], [None, 2**33, 2**33]])
def test_invalid_extents_are_refused(fluid, shape):
    block = fluid.default_main_program().global_block()
    stored = [-1 if extent is None else extent for extent in shape]
    for call in (
        lambda: fluid.data("z", shape),
        lambda: fluid.layers.data("z", shape, append_batch_size=False),
        lambda: block.create_var(name="z", shape=stored, dtype="float32"),
    ):
        refused(call, "E-var-extent", "^z: ")
        assert not block.has_var("z")
    var = fluid.data("y", [None, 2])
    refused(lambda: var.desc.set_shape(stored), "E-var-extent", "^y: ")
    assert var.shape == (-1, 2)


@pytest.mark.parametrize("size", [[10, -4], [-10, 4], [2**40, 2**40]])
def test_invalid_table_sizes_are_refused(fluid, size):
    ids = fluid.data("ids", [None, 1], "int64")
    with pytest.raises((ValueError, TypeError)):
        fluid.embedding(ids, size)


def test_unknown_extents_are_accepted(fluid):
    assert fluid.data("z", [None, -1, 3, 0]).shape == (-1, -1, 3, 0)


def test_variable_names_must_not_be_empty(fluid):
    block = fluid.default_main_program().global_block()
    for call in (
        lambda: fluid.data("", [4]),
        lambda: fluid.layers.data("", [4]),
        lambda: block.create_var(name="", shape=[1], dtype="float32"),
        lambda: block.create_parameter(name="", shape=[1], dtype="float32"),
    ):
        refused(call, "E-var-name", "must have a name")


# Names in no_grad_set.
def test_an_unknown_name_in_no_grad_set_is_refused(fluid):
    loss = loss_of(fluid)
    for call in (
        lambda: fluid.optimizer.SGD(0.1).minimize(loss, no_grad_set={"fc_0.w_1"}),
        lambda: fluid.optimizer.SGD(0.1).backward(loss, no_grad_set={"fc_0.w_1"}),
        lambda: fluid.backward.append_backward(loss, no_grad_set={"fc_0.w_1"}),
        lambda: fluid.gradients(loss, loss.block.var("x"), no_grad_set={"fc_0.w_1"}),
    ):
        refused(call, "E-no-grad-unknown", "no_grad_set: the program has no variable fc_0.w_1; did you mean fc_0.w_0")
    fluid.optimizer.SGD(0.1).minimize(loss, no_grad_set={"fc_0.b_0", loss.block.var("y"), "x@GRAD"})


@pytest.mark.parametrize(
    "call, text",
    [
        (
            lambda fluid: fluid.optimizer.SGD(1e300),
            "SGDOptimizer: learning_rate: the value 1e.300 has no equal in float32",
        ),
        (lambda fluid: fluid.clip.GradientClipByNorm("1"), "GradientClipByNorm: clip_norm must be a number, not '1'"),
        (lambda fluid: fluid.clip.GradientClipByGlobalNorm([1.0]), r"clip_norm must be a number, not \[1.0\]"),
        (lambda fluid: fluid.clip.GradientClipByValue("1"), "clip: max must be a number, not '1'"),
    ],
)
def test_hyperparameters_must_fit_float32(fluid, call, text):
    with pytest.raises((TypeError, ValueError), match=text):
        call(fluid)


@pytest.mark.parametrize("field", ["mode", "slicing", "bn_sync", "clip", "exchange", "on_uneven", "collective_mode"])
@pytest.mark.parametrize("value", [np.array([1, 2]), 3, ["sync"]])
def test_transpiler_options_must_be_known_values(fluid, field, value):
    config = fluid.DistributeTranspilerConfig()
    setattr(config, field, value)
    with pytest.raises(penstock.ProgramError, match=f"^plan: {field} "):
        fluid.DistributeTranspiler(config).transpile(0, pservers="127.0.0.1:6174", trainers=2)


@pytest.mark.parametrize("current", [None, 3])
def test_a_rank_requires_an_address(fluid, current):
    fluid.optimizer.SGD(0.1).minimize(fluid.layers.mean(fluid.layers.fc(fluid.data("x", [None, 4]), 1)))
    config = fluid.DistributeTranspilerConfig()
    config.mode = "nccl2"
    with pytest.raises(penstock.ProgramError, match="plan: current_endpoint must be this trainer's address, not "):
        fluid.DistributeTranspiler(config).transpile(0, trainers="127.0.0.1:1,127.0.0.1:2", current_endpoint=current)
