"""fluid.contrib: the supported names, and the errors of the unsupported ones."""

import numpy
import pytest


def run(fluid, fetches, **feed):
    exe = fluid.Executor()
    exe.run(fluid.default_startup_program())
    return exe.run(feed=feed, fetch_list=fetches)


def test_memory_usage_equals_the_memory_plan(fluid):
    x = fluid.data("x", [None, 256])
    hidden = fluid.layers.fc(x, 256, bias_attr=False)
    for _ in range(3):
        hidden = fluid.layers.relu(hidden)
    usage = fluid.contrib.memory_usage
    low, high, unit = usage(fluid.default_main_program(), batch_size=64)
    # The weight has 256 KB, the feed and each of four temporaries 64; relu computes in the memory of its input.
    assert unit == "KB" and 256 + 64 + 64 <= low < 256 + 64 + 2 * 64 and 256 + 5 * 64 <= high
    assert usage(fluid.default_main_program(), 6400)[2] == "MB"
    small = fluid.Program()
    with fluid.program_guard(small, fluid.Program()):
        fluid.layers.relu(fluid.data("y", [None, 2]))
    assert usage(small, 8)[2] == "B" and usage(small, 8)[0] >= 8 * 2 * 4
    assert usage(fluid.Program(), 1) == (0, 0, "B")
    with pytest.raises(TypeError, match="memory_usage takes a Program, not str"):
        usage("x", 1)
    with pytest.raises(ValueError, match="the batch size must be positive, not 0.*E-memory-batch"):
        usage(small, 0)


def test_memory_usage_covers_branches(fluid):
    x = fluid.data("x", [None, 4])
    loss = fluid.layers.mean(fluid.layers.fc(x, 2))
    limit = fluid.layers.fill_constant([1], "float32", 0.5)
    fluid.layers.cond(fluid.layers.less_than(loss, limit), lambda: loss, lambda: limit)
    fluid.optimizer.Adam(0.1).minimize(loss)
    low, high, _ = fluid.contrib.memory_usage(fluid.default_main_program(), 16)
    assert 0 < low <= high


def test_op_freq_statistic_counts_ops(fluid):
    y = fluid.layers.relu(fluid.layers.fc(fluid.layers.fc(fluid.data("x", [None, 4]), 3), 2))
    types, pairs = fluid.contrib.op_freq_statistic(fluid.default_main_program())
    assert types == [("mul", 2), ("elementwise_add", 2), ("relu", 1)]
    assert pairs == [("mul->elementwise_add", 2), ("elementwise_add->mul", 1), ("elementwise_add->relu", 1)]
    types, _ = fluid.contrib.op_freq_statistic(fluid.default_startup_program())
    assert types == []  # they only write parameters
    with pytest.raises(TypeError, match="op_freq_statistic takes a Program, not Variable"):
        fluid.contrib.op_freq_statistic(y)


def test_summary_counts_parameters_and_operations(fluid, capsys):
    image = fluid.data("image", [None, 3, 8, 8])
    features = fluid.layers.conv2d(image, 4, 3, act="relu", bias_attr=False)
    features = fluid.layers.pool2d(fluid.layers.batch_norm(features), 2, "max", 2)
    fluid.layers.prelu(fluid.layers.fc(features, 10), "all")
    fluid.contrib.summary(fluid.default_main_program())
    lines = capsys.readouterr().out.splitlines()
    cells = [line.replace(", ", ",").split() for line in lines]
    assert cells[1] == ["0", "conv2d", "[3,8,8]", "[4,6,6]", str(4 * 27), str(2 * 144 * 27)]
    assert cells[2] == ["1", "relu", "[4,6,6]", "[4,6,6]", "0", "144"]
    assert cells[3] == ["2", "batch_norm", "[4,6,6]", "[4,6,6]", "8", "288"]
    assert cells[4] == ["3", "pool2d", "[4,6,6]", "[4,3,3]", "0", str(36 * 4)]
    assert cells[5] == ["4", "mul", "[4,3,3]", "[10]", "360", "720"]
    assert cells[6] == ["5", "prelu", "[10]", "[10]", "1", "10"]
    total = 108 + 8 + 360 + 1
    assert lines[7] == f"Total PARAMs: {total}({total / 1e6:.4f}M)"


def test_the_distributed_reader_gives_each_trainer_its_batches(fluid, monkeypatch):
    reader = fluid.contrib.reader.distributed_batch_reader
    monkeypatch.setenv("PADDLE_TRAINERS_NUM", "2")
    for trainer, batches in ((0, [0, 2]), (1, [1, 3])):
        monkeypatch.setenv("PADDLE_TRAINER_ID", str(trainer))
        mine = reader(lambda: range(5))
        assert list(mine()) == list(mine()) == batches
    monkeypatch.setenv("PADDLE_TRAINER_ID", "2")
    with pytest.raises(ValueError, match="PADDLE_TRAINER_ID is 2, but PADDLE_TRAINERS_NUM is 2"):
        reader(lambda: range(5))
    for name in ("PADDLE_TRAINERS_NUM", "PADDLE_TRAINER_ID"):
        monkeypatch.delenv(name)
    assert list(reader(lambda: range(3))()) == [0, 1, 2]


def decayed_step(fluid, **options):
    """The weight after a step of SGD, rate 0.5, on the mean of x . w, w = [2, -4], x = [1, 3]."""
    attr = fluid.ParamAttr(
        name="w", initializer=fluid.initializer.NumpyArrayInitializer(numpy.array([[2], [-4]], "float32"))
    )
    loss = fluid.layers.mean(fluid.layers.fc(fluid.data("x", [1, 2]), 1, param_attr=attr, bias_attr=False))
    kind = fluid.contrib.extend_with_decoupled_weight_decay(fluid.optimizer.SGD)
    optimizer = kind(learning_rate=0.5, **options)
    optimizer.minimize(loss)
    return optimizer, run(fluid, ["w"], x=numpy.array([[1, 3]], "float32"))[0].ravel().tolist()


def test_decoupled_weight_decay_follows_its_formula(fluid):
    optimizer, weight = decayed_step(fluid, weight_decay=0.25)
    assert weight == [2 - 0.25 * 2 - 0.5 * 1, -4 + 0.25 * 4 - 0.5 * 3]
    assert str(optimizer) == "Weight Decay, params: w"


@pytest.mark.parametrize(
    "options", [{"weight_decay": 0.0}, {"weight_decay": 0.25, "apply_decay_param_fun": lambda name: name != "w"}]
)
def test_zero_weight_decay_equals_the_plain_optimizer(fluid, options):
    assert decayed_step(fluid, **options)[1] == [1.5, -5.5]


def test_weight_decay_requires_an_optimizer_class(fluid):
    with pytest.raises(TypeError, match="takes a subclass of Optimizer, not 3"):
        fluid.contrib.extend_with_decoupled_weight_decay(3)
    with pytest.raises(TypeError, match="coeff must be a float or a Variable, not 'x'"):
        decayed_step(fluid, weight_decay="x")


@pytest.mark.parametrize(
    "use, why",
    [
        ("from penstock.fluid.contrib.slim import Compressor", "fluid.contrib.slim.Compressor: compression"),
        ("import penstock.fluid.contrib.slim.quantization", "fluid.contrib.slim: compression"),
        ("fluid.contrib.QuantizeTranspiler()", "QuantizeTranspiler: quantization is not part"),
        ("fluid.contrib.quantize.quant", "fluid.contrib.quantize.quant: quantization is not part"),
    ],
)
def test_unsupported_contrib_names_state_the_reason(fluid, use, why):
    with pytest.raises(NotImplementedError, match=why):
        exec(use, {"fluid": fluid})


def test_ctr_metric_bundle_sums_its_statistics(fluid):
    p, y = fluid.data("p", [None, 1]), fluid.data("y", [None, 1])
    sums = fluid.contrib.layers.ctr_metric_bundle(p, y)
    exe = fluid.Executor()
    exe.run(fluid.default_startup_program())
    random = numpy.random.RandomState(3)
    predicted, clicked = random.rand(7, 1).astype("float32"), (random.rand(7, 1) < 0.5).astype("float32")
    for part in (slice(0, 4), slice(4, 7)):
        values = exe.run(feed={"p": predicted[part], "y": clicked[part]}, fetch_list=sums)
    error = predicted - clicked
    right = [
        (error**2).sum(),
        abs(error).sum(),
        predicted.sum(),
        (1 / (1 + numpy.exp(-predicted))).sum(),
        clicked.sum(),
        7,
    ]
    numpy.testing.assert_allclose([value[0] for value in values], right, rtol=1e-5)
    with pytest.raises(ValueError, match=r"input is \[-1, 1\] and label is \[-1, 2\]"):
        fluid.contrib.layers.ctr_metric_bundle(p, fluid.data("z", [None, 2]))


def test_contrib_layers_include_fluids_layers(fluid):
    assert fluid.contrib.layers.fc is fluid.layers.fc
    with pytest.raises(AttributeError, match="penstock.fluid.layers has no nonsense"):
        fluid.contrib.layers.nonsense
