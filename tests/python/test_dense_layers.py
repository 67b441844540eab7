"""The dense layers compute the documented values, and learn."""

import numpy as np
import pytest
from test_layers import run_once

RANDOM = np.random.RandomState(3)
X = RANDOM.uniform(-2, 2, (3, 4)).astype("float32")
IMAGE = RANDOM.uniform(-2, 2, (2, 4, 3, 3)).astype("float32")


@pytest.fixture(autouse=True)
def the_same_start_each_time(fluid):
    fluid.default_startup_program().random_seed = 3


def learn(fluid, loss, feed, steps=30, rate=0.5):
    fluid.optimizer.SGD(rate).minimize(loss)
    exe = fluid.Executor()
    exe.run(fluid.default_startup_program())
    return [exe.run(feed=feed, fetch_list=[loss])[0][0] for _ in range(steps)]


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


UNARY = {
    "atan": (lambda L, x: L.atan(x), np.arctan),
    "logsigmoid": (lambda L, x: L.logsigmoid(x), lambda x: np.log(sigmoid(x))),
    "tanh_shrink": (lambda L, x: L.tanh_shrink(x), lambda x: x - np.tanh(x)),
    "elu": (lambda L, x: L.elu(x, 0.5), lambda x: np.where(x > 0, x, 0.5 * (np.exp(x) - 1))),
    "relu6": (lambda L, x: L.relu6(x, 1.0), lambda x: np.clip(x, 0, 1)),
    "stanh": (lambda L, x: L.stanh(x, 0.5, 2.0), lambda x: 2 * np.tanh(0.5 * x)),
    "hard_sigmoid": (lambda L, x: L.hard_sigmoid(x, 0.5, 0.25), lambda x: np.clip(0.5 * x + 0.25, 0, 1)),
    "swish": (lambda L, x: L.swish(x, 2.0), lambda x: x * sigmoid(2 * x)),
    "hard_swish": (lambda L, x: L.hard_swish(x), lambda x: x * np.clip(x + 3, 0, 6) / 6),
    "gelu": (lambda L, x: L.gelu(x, True), lambda x: x / 2 * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))),
    "cumsum": (lambda L, x: L.cumsum(x, axis=0, reverse=True), lambda x: x[::-1].cumsum(0)[::-1]),
    "l2_normalize": (lambda L, x: L.l2_normalize(x, 1), lambda x: x / np.sqrt((x * x).sum(1, keepdims=True))),
    "argmax": (lambda L, x: L.argmax(x, 1), lambda x: x.argmax(1)),
    "argmin": (lambda L, x: L.argmin(x), lambda x: x.argmin(0)),
    "argsort": (lambda L, x: L.argsort(x, descending=True)[1], lambda x: (-x).argsort(1)),
    "has_nan": (lambda L, x: L.has_nan(x / (x - x)), lambda x: [False]),
    "has_inf": (lambda L, x: L.has_inf(x / (x - x)), lambda x: [True]),
    "expand": (lambda L, x: L.expand(x, [2, 1]), lambda x: np.tile(x, (2, 1))),
    "strided_slice": (lambda L, x: L.strided_slice(x, [0, 1], [0, -1], [9, -9], [2, -3]), lambda x: x[::2, ::-3]),
    "reverse": (lambda L, x: L.reverse(x, [0, -1]), lambda x: x[::-1, ::-1]),
    "stack": (lambda L, x: L.stack([x, x * 2.0], 1), lambda x: np.stack([x, x * 2], 1)),
    "pad": (lambda L, x: L.pad(x, [1, 0, 0, 2], 0.5), lambda x: np.pad(x, ((1, 0), (0, 2)), constant_values=0.5)),
    "shape": (lambda L, x: L.shape(x), lambda x: x.shape),
    "elementwise_mod": (
        lambda L, x: L.elementwise_mod(L.cast(x * 4.0, "int64"), L.fill_constant([1], "int64", 3)),
        lambda x: np.fmod((x * 4).astype("int64"), 3),
    ),
    "elementwise_floordiv": (
        lambda L, x: L.elementwise_floordiv(L.cast(x * 4.0, "int64"), L.fill_constant([1], "int64", 3)),
        lambda x: np.trunc((x * 4).astype("int64") / 3),
    ),
    "cos_sim": (lambda L, x: L.cos_sim(x, x * -2.0), lambda x: -np.ones((len(x), 1))),
    "smooth_l1": (
        lambda L, x: L.smooth_l1(x, x * 0.5),
        lambda x: np.where(np.abs(x / 2) < 1, x * x / 8, np.abs(x / 2) - 0.5).sum(1, keepdims=True),
    ),
    "kldiv_loss": (
        lambda L, x: L.kldiv_loss(x, L.sigmoid(x), "sum"),
        lambda x: [(sigmoid(x) * (np.log(sigmoid(x)) - x)).sum()],
    ),
    "rank_loss": (lambda L, x: L.rank_loss(x, x, x * 2.0), lambda x: np.log(1 + np.exp(-x)) + x * x),
    "margin_rank_loss": (
        lambda L, x: L.margin_rank_loss(x * 0.0 + 1.0, x, x * 2.0, 0.5),
        lambda x: np.maximum(0, x + 0.5),
    ),
}


@pytest.mark.parametrize("name", UNARY)
def test_a_layer_of_one_tensor_agrees_with_numpy(fluid, name):
    layer, expected = UNARY[name]
    x = fluid.data("x", [None, 4], "float32")
    (got,) = run_once(fluid, {"x": X}, [layer(fluid.layers, x)])
    np.testing.assert_allclose(got, expected(X), rtol=1e-5, atol=1e-5)


def test_layers_of_images_agree_with_numpy(fluid):
    layers = fluid.layers
    image = fluid.data("image", [None, 4, 3, 3], "float32")
    squares = np.pad(IMAGE * IMAGE, ((0, 0), (1, 1), (0, 0), (0, 0)))
    around = squares[:, :-2] + squares[:, 1:-1] + squares[:, 2:]
    pairs = [
        (layers.maxout(image, 2), IMAGE.reshape(2, 2, 2, 3, 3).max(2)),
        (layers.lrn(image, n=3, alpha=0.5), IMAGE * (1 + 0.5 * around) ** -0.75),
        (layers.pad2d(image, [1, 0, 2, 1], "reflect"), np.pad(IMAGE, ((0, 0), (0, 0), (1, 0), (2, 1)), "reflect")),
        (layers.pad2d(image, [1, 0, 2, 1], "edge"), np.pad(IMAGE, ((0, 0), (0, 0), (1, 0), (2, 1)), "edge")),
        (layers.prelu(image, "channel"), np.where(IMAGE > 0, IMAGE, IMAGE / 4)),
    ]
    for got, (_, expected) in zip(run_once(fluid, {"image": IMAGE}, [out for out, _ in pairs]), pairs):
        np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-5)


def test_a_transposed_convolution_restores_the_shape_and_trains(fluid):
    layers = fluid.layers
    image = fluid.data("image", [None, 4, 3, 3], "float32")
    larger = layers.conv2d_transpose(image, 2, output_size=7, stride=2)
    assert larger.shape[1:] == (2, 7, 7)
    loss = layers.reduce_mean(layers.square(layers.conv2d(larger, 4, 3, stride=2) - image))
    losses = learn(fluid, loss, {"image": IMAGE}, steps=5, rate=0.01)
    assert losses[-1] < losses[0]


def test_depthwise_transposed_convolution_has_its_own_op(fluid):
    layers = fluid.layers
    image = fluid.data("image", [None, 4, 3, 3], "float32")
    attr = fluid.ParamAttr("w", initializer=fluid.initializer.Uniform(seed=3))
    out = [
        layers.conv2d_transpose(image, 4, filter_size=3, groups=4, param_attr=attr, bias_attr=False, use_cudnn=cudnn)
        for cudnn in (False, True)
    ]
    types = [op.type for op in fluid.default_main_program().global_block().ops]
    assert types == ["depthwise_conv2d_transpose", "conv2d_transpose"]
    alone, grouped = run_once(fluid, {"image": IMAGE}, out)
    np.testing.assert_array_equal(alone, grouped)


def test_strides_may_be_or_hold_variables(fluid):
    layers = fluid.layers
    x, step = fluid.data("x", [None, 4], "float32"), fluid.data("step", [1], "int32")
    out = [layers.strided_slice(x, [1], [0], [4], step), layers.strided_slice(x, [0, 1], [-1, 0], [-9, 4], [-1, step])]
    got = run_once(fluid, {"x": X, "step": np.array([3], "int32")}, out)
    np.testing.assert_array_equal(got[0], X[:, ::3])
    np.testing.assert_array_equal(got[1], X[::-1, ::3])
    with pytest.raises(ValueError, match="strides holds 0 for extent 1"):
        run_once(fluid, {"x": X, "step": np.array([0], "int32")}, out[:1])


def test_bounds_of_a_slice_and_times_of_expand_may_be_variables(fluid):
    layers = fluid.layers
    x = fluid.data("x", [None, 4], "float32")
    one, end = layers.fill_constant([1], "int32", 1), fluid.data("end", [1], "int32")
    part = layers.slice(x, [0, 1], [one, 0], [end, 3])
    twice = layers.expand(part, [1, end])
    total = layers.reduce_sum(twice)
    end_value = np.array([2], "int32")
    got = run_once(fluid, {"x": X, "end": end_value}, [part, twice, total])
    np.testing.assert_array_equal(got[0], X[1:2, 0:3])
    np.testing.assert_array_equal(got[1], np.tile(X[1:2, 0:3], (1, 2)))
    np.testing.assert_allclose(got[2], [2 * X[1, :3].sum()], rtol=1e-6)


def test_shapes_may_be_or_hold_variables(fluid):
    layers = fluid.layers
    x, rows = fluid.data("x", [3, 4], "float32"), fluid.data("rows", [1], "int32")
    whole = layers.concat([rows, layers.fill_constant([1], "int32", 2)])
    out = [
        layers.reshape(x, [rows, -1]),
        layers.reshape(x, whole),
        layers.fill_constant([rows, 2], "float32", 1.5),
        layers.fill_constant(whole, "int64", 7),
    ]
    got = run_once(fluid, {"x": X, "rows": np.array([6], "int32")}, out)
    np.testing.assert_array_equal(got[0], X.reshape(6, 2))
    np.testing.assert_array_equal(got[1], X.reshape(6, 2))
    np.testing.assert_array_equal(got[2], np.full((6, 2), 1.5))
    np.testing.assert_array_equal(got[3], np.full((6, 2), 7))
    with pytest.raises(ValueError, match="cannot take shape"):
        run_once(fluid, {"x": X, "rows": np.array([5], "int32")}, out[:1])


def test_range_takes_numbers_and_variables(fluid):
    layers = fluid.layers
    end = fluid.data("end", [1], "int64")
    got = run_once(
        fluid,
        {"end": np.array([7], "int64")},
        [layers.range(0, end, 3, "int64"), layers.range(1.0, 0.0, -0.25, "float32")],
    )
    np.testing.assert_array_equal(got[0], [0, 3, 6])
    np.testing.assert_allclose(got[1], [1, 0.75, 0.5, 0.25])


def test_an_index_out_of_range_names_the_op_and_line(fluid):
    x, index = fluid.data("x", [None, 4], "float32"), fluid.data("index", [2], "int64")
    rows = fluid.layers.gather(x, index)
    with pytest.raises(ValueError, match="index 9 is outside of X, which has 3 rows(.|\n)*test_dense_layers"):
        run_once(fluid, {"x": X, "index": np.array([0, 9], "int64")}, [rows])


CLASSES = np.array([[0], [2], [4]], "int64")


def nce(fluid, sampler="uniform", is_sparse=False):
    x, label = fluid.data("x", [None, 4], "float32"), fluid.data("label", [None, 1], "int64")
    cost = fluid.layers.nce(
        x,
        label,
        6,
        num_neg_samples=3,
        sampler=sampler,
        seed=5,
        is_sparse=is_sparse,
        custom_dist=[0.1, 0.2, 0.3, 0.1, 0.2, 0.1] if sampler == "custom_dist" else None,
    )
    return fluid.layers.mean(cost), {"x": X, "label": CLASSES}


def hsigmoid(fluid, is_custom=False, is_sparse=False):
    x, label = fluid.data("x", [None, 4], "float32"), fluid.data("label", [None, 1], "int64")
    feed, ways = {"x": X, "label": CLASSES}, {}
    if is_custom:
        ways = {"path_" + name: fluid.data(name, [None, 2], "int64") for name in ("table", "code")}
        feed["table"] = np.array([[0, 1], [0, 2], [0, -1]], "int64")
        feed["code"] = np.array([[0, 1], [1, 0], [1, 0]], "int64")
    return fluid.layers.mean(fluid.layers.hsigmoid(x, label, 5, is_custom=is_custom, is_sparse=is_sparse, **ways)), feed


@pytest.mark.parametrize("sampler", ["uniform", "log_uniform", "custom_dist"])
def test_nce_learns(fluid, sampler):
    loss, feed = nce(fluid, sampler)
    losses = learn(fluid, loss, feed)
    assert losses[-1] < 0.9 * losses[0]  # the noise, which is drawn once, has its share


@pytest.mark.parametrize("is_custom", [False, True])
def test_a_hierarchical_sigmoid_trains_with_default_and_custom_trees(fluid, is_custom):
    loss, feed = hsigmoid(fluid, is_custom)
    losses = learn(fluid, loss, feed)
    assert losses[-1] < 0.8 * losses[0]


@pytest.mark.parametrize("layer, weight", [(nce, "nce_0.w_0"), (hsigmoid, "hierarchical_sigmoid_0.w_0")])
def test_a_sparse_gradient_sums_to_the_dense_gradient(fluid, layer, weight):
    sums = []
    for is_sparse in (False, True):
        with fluid.program_guard(fluid.Program(), fluid.Program()), fluid.unique_name.guard():
            fluid.default_startup_program().random_seed = 3
            loss, feed = layer(fluid, is_sparse=is_sparse)
            fluid.backward.append_backward(loss)
            grad = loss.block.var(weight + "@GRAD")
            if is_sparse:
                assert grad.type.name == "SELECTED_ROWS"
                grad = fluid.layers.get_tensor_from_selected_rows(fluid.layers.merge_selected_rows(grad))
            sums.append(run_once(fluid, feed, [grad])[0])
    np.testing.assert_allclose(sums[1].sum(0), sums[0].sum(0), rtol=1e-4)


@pytest.mark.parametrize("is_sparse", [False, True])
def test_a_hierarchical_sigmoid_in_a_block_has_equal_gradients(fluid, is_sparse):
    L, grads, runs = fluid.layers, [], []

    def cost(x, label):
        return L.hsigmoid(x, label, 5, is_sparse=is_sparse, param_attr="w", bias_attr="b")

    def outside(x, label):
        return cost(x, label) + cost(L.tanh(x), label) + cost(x, label)

    def in_branches(x, label):  # nested, beside a use before and one after
        yes = L.less_than(L.reduce_mean(x), L.fill_constant([1], "float32", 1e6))
        branch = L.cond(
            yes,
            lambda: L.cond(yes, lambda: cost(L.tanh(x), label), lambda: cost(x, label)),
            lambda: L.scale(cost(x, label), 7.0),
        )
        return cost(x, label) + branch + cost(x, label)

    def in_steps(x, label):
        rnn, steps, batch = L.StaticRNN(), L.stack([x, L.tanh(x), x]), L.reduce_sum(x, 1, keep_dim=True)
        with rnn.step():
            now = rnn.step_input(steps)
            memory = rnn.memory(shape=[-1, 1], batch_ref=batch, ref_batch_dim_idx=0)
            step = cost(now, label) + memory
            rnn.update_memory(memory, step)
            rnn.step_output(step)
        return L.reshape(L.slice(rnn(), [0], [2], [3]), [-1, 1])

    for build in (outside, in_branches, in_steps):
        with fluid.program_guard(fluid.Program(), fluid.Program()), fluid.unique_name.guard():
            fluid.default_startup_program().random_seed = 3
            x, label = fluid.data("x", [None, 4], "float32"), fluid.data("label", [None, 1], "int64")
            x.stop_gradient = False
            loss = L.mean(build(x, label))
            fluid.optimizer.SGD(1.0).minimize(loss)
            with fluid.scope_guard(fluid.Scope()):
                exe = fluid.Executor()
                exe.run(fluid.default_startup_program())
                runs.append([exe.run(feed={"x": X, "label": CLASSES}, fetch_list=[loss])[0].item() for _ in range(2)])
                grads.append({name: np.array(fluid.global_scope().find_var(name).get_tensor()) for name in "wb"})
    for again, values in zip(runs[1:], grads[1:]):
        np.testing.assert_allclose(again, runs[0], rtol=1e-5)
        for name in "wb":
            np.testing.assert_allclose(values[name], grads[0][name], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("slide_steps, last_alone, kind", [(1, 0.0, "int64"), (2, 0.75, "int64"), (0, 0.75, "int32")])
def test_auc_counts_over_batches(fluid, slide_steps, last_alone, kind):
    layers = fluid.layers
    scores, label = fluid.data("scores", [None, 2], "float32"), fluid.data("label", [None, 1], kind)
    total, last, _ = layers.auc(scores, label, slide_steps=slide_steps)
    exe = fluid.Executor()
    exe.run(fluid.default_startup_program())

    def step(positive, labels):
        positive = np.array(positive, "float32")
        feed = {"scores": np.stack([1 - positive, positive], 1), "label": np.array(labels, kind).reshape(-1, 1)}
        return [value[0] for value in exe.run(feed=feed, fetch_list=[total, last])]

    assert step([0.1, 0.9], [0, 1]) == [1.0, 1.0]
    assert step([0.2, 0.8], [1, 0]) == [0.75, last_alone]  # of 4 pairs, 3 stand in order


@pytest.mark.parametrize(
    "call, says",
    [
        (lambda L, x: L.prelu(x, "row"), "mode must be all, channel or element, not 'row'"),
        (lambda L, x: L.maxout(x, 2, axis=2), "axis must be 1, -1 or 3, not 2"),
        (lambda L, x: L.lrn(x), "lrn takes images of 4 axes"),
        (lambda L, x: L.conv2d_transpose(L.reshape(x, [-1, 4, 1, 1]), 2), "needs output_size or filter_size"),
        (lambda L, x: L.nce(x, L.cast(x, "int64"), 5, sampler="zipf"), "sampler must be one of"),
        (
            lambda L, x: L.nce(x, L.cast(x, "int64"), 5, sampler="custom_dist", custom_dist=[1.0]),
            "1 probabilities for 5 classes",
        ),
        (lambda L, x: L.hsigmoid(x, L.cast(x, "int64"), 1), "num_classes must be at least 2, not 1"),
        (lambda L, x: L.hsigmoid(x, L.cast(x, "int64"), 5, is_custom=True), "is_custom needs path_table and path_code"),
    ],
)
def test_a_wrong_argument_is_reported(fluid, call, says):
    with pytest.raises(ValueError, match=says):
        call(fluid.layers, fluid.data("x", [None, 4], "float32"))


def test_axes_sections_and_extents_may_be_variables(fluid):
    L = fluid.layers
    x = fluid.data("x", [None, 4])
    axis, one, rows = (fluid.data(name, [1], "int32") for name in ("axis", "one", "rows"))
    joined = L.concat([x, x], axis)
    left, right = L.split(x, [one, -1], dim=1)
    assert left.shape == (-1, -1) and right.shape == (-1, -1)
    upper, lower = L.split(x, 2, dim=axis)
    spread = L.unsqueeze(x, [one, 0])
    again = L.unsqueeze(x, axis)
    flat = L.reshape(x, [rows, 6])
    assert flat.shape == (-1, 6)
    wide = L.fc(flat, 2, param_attr=fluid.initializer.Constant(1.0), bias_attr=False)
    exe = fluid.Executor()
    exe.run(fluid.default_startup_program())
    for value, edge in ((X, 1), (np.tile(X, (2, 1)), 0)):
        given = [np.array([n], "int32") for n in (edge, 1, value.size // 6)]
        feed = dict(zip(("x", "axis", "one", "rows"), [value] + given))
        got = exe.run(feed=feed, fetch_list=[joined, left, right, upper, lower, spread, again, wide])
        expected = [np.concatenate([value, value], edge), value[:, :1], value[:, 1:]] + np.split(value, 2, edge)
        sums = value.reshape(-1, 6).sum(1, keepdims=True)
        expected += [value[None, :, None], np.expand_dims(value, edge), np.concatenate([sums, sums], 1)]
        for ours, theirs in zip(got, expected):
            np.testing.assert_allclose(ours, theirs, rtol=1e-5)


def test_gradients_flow_through_an_axis_that_is_a_variable(fluid):
    start = fluid.initializer.NumpyArrayInitializer(X)
    x = fluid.layers.create_parameter([3, 4], "float32", name="x", default_initializer=start)
    axis = fluid.data("axis", [1], "int32")
    left, right = fluid.layers.split(x, 2, dim=axis)
    joined = fluid.layers.concat([fluid.layers.square(right), left], axis)
    ((_, grad),) = fluid.backward.append_backward(fluid.layers.reduce_sum(joined))
    exe = fluid.Executor()
    exe.run(fluid.default_startup_program())
    (got,) = exe.run(feed={"axis": np.array([1], "int32")}, fetch_list=[grad])
    np.testing.assert_allclose(got, np.concatenate([np.ones((3, 2)), 2 * X[:, 2:]], 1), rtol=1e-6)
