"""Layers that take, insert, move, find, multiply and sample elements, compared with NumPy."""

import math

import numpy as np
import pytest


def rand(*shape, seed=0):
    return np.random.RandomState(seed).uniform(-2, 2, shape).astype("float32")


X, Y = rand(2, 3, 4), rand(2, 3, 4, seed=1)
SQUARE = rand(4, 4)
COUNTS = np.array([7, 3, 7, 9, 3, 7], "int64")
TRUTHS = np.array([[True, False, True], [True, True, True]])


def softplus(x):
    return np.log1p(np.exp(x))


# Layer, its arrays, its other arguments, the result in NumPy.
CASES = {
    "acos": ([X / 2], {}, np.arccos),
    "asin": ([X / 2], {}, np.arcsin),
    "erf": ([X], {}, lambda x: np.vectorize(math.erf)(x)),
    "log1p": ([abs(X)], {}, np.log1p),
    "hard_shrink": ([X], {"threshold": 0.75}, lambda x: x * (abs(x) > 0.75)),
    "softshrink": ([X], {"alpha": 0.75}, lambda x: np.sign(x) * np.maximum(abs(x) - 0.75, 0)),
    "thresholded_relu": ([X], {"threshold": 0.5}, lambda x: x * (x > 0.5)),
    "brelu": ([X], {"t_min": -0.5, "t_max": 1.5}, lambda x: np.clip(x, -0.5, 1.5)),
    "soft_relu": ([X], {"threshold": 1.5}, lambda x: softplus(np.clip(x, -1.5, 1.5))),
    "selu": ([X], {}, lambda x: 1.0507009873554805 * np.where(x > 0, x, 1.6732632423543772 * np.expm1(x))),
    "mish": ([X], {}, lambda x: x * np.tanh(softplus(x))),
    "gather_nd": ([X, np.array([[1, 2], [0, 1]])], {}, lambda x, i: x[i[:, 0], i[:, 1]]),
    "index_select": ([X, np.array([2, 0, 2])], {"dim": 1}, lambda x, i: np.take(x, i, 1)),
    "index_sample": (
        [SQUARE, np.array([[0, 3], [1, 1], [2, 0], [3, 3]])],
        {},
        lambda x, i: np.take_along_axis(x, i, 1),
    ),
    "where": ([TRUTHS], {}, np.argwhere),
    "nonzero": ([np.array([[0, 2], [3, 0]], "float32")], {}, np.argwhere),
    "shard_index": ([COUNTS], {"index_num": 10, "nshards": 2, "shard_id": 1}, lambda x: np.where(x >= 5, x - 5, -1)),
    "crop": ([X], {"shape": [-1, 2, 3], "offsets": [0, 1, 1]}, lambda x: x[:, 1:3, 1:4]),
    "crop_tensor": ([X], {"shape": [1, -1, 2], "offsets": [1, 1, 0]}, lambda x: x[1:, 1:, :2]),
    "pad_constant_like": (
        [X, X[:1, :, :3]],
        {"pad_value": 5.0},
        lambda x, y: np.pad(y, [(0, 1), (0, 0), (0, 1)], constant_values=5),
    ),
    "expand_as": ([X[:1, :, :2], X], {}, lambda x, y: np.tile(x, [2, 1, 2])),
    "flip": ([X], {"dims": [0, -1]}, lambda x: x[::-1, :, ::-1]),
    "roll": ([X], {"shifts": [1, -1], "dims": [0, 2]}, lambda x: np.roll(x, (1, -1), (0, 2))),
    "t": ([SQUARE[:3]], {}, np.transpose),
    "unstack": ([X], {"axis": 1}, lambda x: list(x.transpose(1, 0, 2))),
    "diag_embed": ([SQUARE[0]], {"offset": 1}, lambda x: np.diag(x, 1)),
    "diag": ([SQUARE[0]], {}, np.diag),
    "tril": ([X], {"diagonal": -1}, lambda x: np.tril(x, -1)),
    "triu": ([X], {"diagonal": 1}, lambda x: np.triu(x, 1)),
    "trace": ([X], {"offset": 1, "dim1": 1, "dim2": 2}, lambda x: np.trace(x, 1, 1, 2)),
    "kron": ([SQUARE[:2, :3], SQUARE], {}, np.kron),
    "cross": ([X, Y], {"dim": 1}, lambda x, y: np.cross(x, y, axis=1)),
    "dist": ([X, Y], {"p": 3}, lambda x, y: np.array([(abs(x - y) ** 3).sum() ** (1 / 3)])),
    "dot": ([SQUARE, SQUARE + 1], {}, lambda x, y: (x * y).sum(1, keepdims=True)),
    "bmm": ([X, Y.transpose(0, 2, 1)], {}, np.matmul),
    "addmm": ([SQUARE[:1], SQUARE, SQUARE + 1], {"alpha": 0.5, "beta": 2.0}, lambda b, x, y: 0.5 * (x @ y) + 2 * b),
    "full_like": ([X], {"fill_value": 2.5, "dtype": "int64"}, lambda x: np.full_like(x, 2, "int64")),
    "zeros_like": ([X], {}, np.zeros_like),
    "ones_like": ([COUNTS], {}, np.ones_like),
    "rank": ([X], {}, lambda x: np.array(3, "int32")),
    "size": ([X], {}, lambda x: np.array([24], "int64")),
    "reduce_all": ([TRUTHS], {"dim": 1}, lambda x: x.all(1)),
    "reduce_any": ([~TRUTHS], {"dim": [1], "keep_dim": True}, lambda x: x.any(1, keepdims=True)),
    "addcmul": ([X, Y, Y + 1], {"value": 0.5}, lambda a, b, c: a + 0.5 * b * c),
    "clamp": ([X], {"min": -1.0, "max": 0.5}, lambda x: np.clip(x, -1, 0.5)),
    "logsumexp": ([X], {"dim": 2, "keepdim": True}, lambda x: np.log(np.exp(x).sum(2, keepdims=True))),
    "log_softmax": ([X], {}, lambda x: x - np.log(np.exp(x).sum(-1, keepdims=True))),
    "allclose": ([X, X + 1e-6], {"atol": 1e-5}, lambda x, y: np.array([True])),
    "elementwise_equal": ([COUNTS, COUNTS[::-1].copy()], {}, np.equal),
    "scatter": ([SQUARE, np.array([2, 0]), SQUARE[2:]], {}, lambda x, i, u: np.stack([u[1], x[1], u[0], x[3]])),
    "scatter_nd_add": (
        [SQUARE, np.array([[2], [2]]), SQUARE[:2]],
        {},
        lambda x, i, u: np.stack([x[0], x[1], x[2] + u[0] + u[1], x[3]]),
    ),
    "scatter_nd": (
        [np.array([[2], [0]]), SQUARE[:2]],
        {"shape": [3, 4]},
        lambda i, u: np.stack([u[1], 0 * u[0], u[0]]),
    ),
    "unique": ([COUNTS], {"dtype": "int64"}, lambda x: [np.array([7, 3, 9]), np.array([0, 1, 0, 2, 1, 0])]),
    "unique_with_counts": (
        [COUNTS],
        {},
        lambda x: [np.array([7, 3, 9]), np.array([0, 1, 0, 2, 1, 0], "int32"), np.array([3, 2, 1], "int32")],
    ),
    "bpr_loss": (
        [SQUARE, np.array([[0], [3], [1], [1]])],
        {},
        lambda x, i: np.mean(
            [np.delete(softplus(row - row[at]), at) for row, at in zip(x, i.ravel())], 1, keepdims=True
        ),
    ),
    "mse_loss": ([X, Y], {}, lambda x, y: np.array([((x - y) ** 2).mean()])),
    "teacher_student_sigmoid_loss": (
        [SQUARE[:, :1], np.array([[-2], [-1], [0.25], [1.5]], "float32")],
        {},
        lambda x, y: (
            softplus(x) - x * [[0], [1], [0], [1]] + np.where(y < 0, 0, softplus(x) - x * np.where(y < 1, y, y - 1))
        ),
    ),
    "fsp_matrix": (
        [rand(2, 3, 4, 5), rand(2, 2, 4, 5, seed=1)],
        {},
        lambda x, y: np.einsum("nihw,njhw->nij", x, y) / 20,
    ),
    "mean_iou": (
        [np.array([0, 1, 2, 1]), np.array([0, 1, 1, 2])],
        {"num_classes": 4},
        lambda x, y: [np.array([4 / 9], "float32"), np.array([0, 2, 2, 0], "int32"), np.array([1, 1, 0, 0], "int32")],
    ),
    "continuous_value_model": (
        [abs(SQUARE), abs(SQUARE[:, :2])],
        {},
        lambda x, c: np.concatenate([np.log(x[:, :1] + 1), np.log(x[:, 1:2] + 1) - np.log(x[:, :1] + 1), x[:, 2:]], 1),
    ),
}


def run(fluid, feed, fetch):
    exe = fluid.Executor()
    exe.run(fluid.default_startup_program())
    return exe.run(feed=feed, fetch_list=fetch)


def built(fluid, layer, arrays, more):
    """The layer's results, and the feeds, whose first extent is not declared."""
    names = [f"v{i}" for i in range(len(arrays))]
    fixed = layer in ("roll", "unstack", "scatter_nd_add", "scatter", "diag_embed", "diag", "cross")
    inputs = []
    for name, array in zip(names, arrays):
        shape = list(array.shape) if fixed else [None, *array.shape[1:]]
        inputs.append(fluid.data(name, shape, str(array.dtype)))
    out = getattr(fluid.layers, layer)(*inputs, **more)
    return list(out) if isinstance(out, (list, tuple)) else [out], dict(zip(names, arrays))


@pytest.mark.parametrize("layer", CASES)
def test_a_layer_computes_what_numpy_does(fluid, layer):
    arrays, more, expected = CASES[layer]
    outs, feed = built(fluid, layer, arrays, more)
    got = run(fluid, feed, outs)
    wanted = expected(*arrays)
    wanted = wanted if isinstance(wanted, list) and len(wanted) == len(outs) else [wanted]
    assert len(got) == len(wanted)
    for ours, numpys in zip(got, wanted):
        numpys = np.asarray(numpys)
        assert ours.shape == numpys.shape and ours.dtype.kind == numpys.dtype.kind
        np.testing.assert_allclose(ours, numpys, rtol=2e-5, atol=1e-6)


def test_a_multiplex_takes_each_row_from_one_of_several(fluid):
    a, b = fluid.data("a", [None, 4]), fluid.data("b", [None, 4])
    which = fluid.data("which", [None, 1], "int32")
    (out,) = run(
        fluid,
        {"a": SQUARE, "b": SQUARE + 9, "which": np.array([[1], [0], [0], [1]], "int32")},
        [fluid.layers.multiplex([a, b], which)],
    )
    np.testing.assert_array_equal(out, SQUARE + np.array([[9], [0], [0], [9]], "float32"))


def test_meshgrid_expands_vectors(fluid):
    outs = fluid.layers.meshgrid([fluid.data("a", [3]), fluid.data("b", [4])])
    got = run(fluid, {"a": SQUARE[0, :3], "b": SQUARE[1]}, outs)
    for ours, numpys in zip(got, np.meshgrid(SQUARE[0, :3], SQUARE[1], indexing="ij")):
        np.testing.assert_array_equal(ours, numpys)


def test_creation_layers_fill_tensors(fluid):
    L = fluid.layers
    got = run(
        fluid,
        {},
        [
            L.eye(2, 3),
            L.eye(2, batch_shape=[2], dtype="int64"),
            L.linspace(1.0, 3.0, 5, "float32"),
            L.arange(1, 10, 3, "int64"),
            L.full([2], 1.5),
            fluid.one_hot(L.arange(0, 3, 1, "int64"), 3),
        ],
    )
    expected = [np.eye(2, 3), [np.eye(2)] * 2, np.linspace(1, 3, 5), np.arange(1, 10, 3), [1.5, 1.5], np.eye(3)]
    for ours, numpys in zip(got, expected):
        np.testing.assert_allclose(ours, numpys)


def test_hash_matches_fluid(fluid):
    words = fluid.data("words", [None, 2], "int64", lod_level=1)
    feed = fluid.create_lod_tensor(np.array([[1, 2], [5, 1 << 20]], "int64"), [[1, 1]], fluid.CPUPlace())
    (out,) = fluid.Executor().run(
        feed={"words": feed}, return_numpy=False, fetch_list=[fluid.layers.hash(words, 1000, num_hash=3)]
    )
    assert out.lod() == [[0, 1, 2]]
    assert np.array(out).tolist() == [[[524], [896], [680]], [[454], [472], [165]]]


def test_random_layers_respect_bounds_and_shape(fluid):
    L = fluid.layers
    x = fluid.data("x", [None, 8, 8])
    shares = L.softmax(fluid.data("logits", [None, 3]))
    got = run(fluid, {'x': rand(5, 8, 8), 'logits': rand(5, 3)}, [
        L.uniform_random_batch_size_like(x, [-1, 3], min=1.0, max=2.0),
        L.gaussian_random_batch_size_like(x, [4, -1], output_dim_idx=1, seed=3),
        L.sampling_id(shares), L.randint(2, 5, shape=[7]), L.randn([3, 2]), L.randperm(6, dtype='int32'),
        L.random_crop(x, [3, 4], seed=5)])  # yapf: disable
    assert [one.shape for one in got] == [(5, 3), (4, 5), (5,), (7,), (3, 2), (6,), (5, 3, 4)]
    assert (got[0] >= 1).all() and (got[0] < 2).all()
    assert (got[3] >= 2).all() and (got[3] < 5).all()
    assert sorted(got[5]) == list(range(6)) and got[5].dtype == "int32"


def test_random_crop_differs_in_each_run(fluid):
    x = fluid.data("x", [1, 1000])
    box = fluid.layers.random_crop(x, [1], seed=5)
    exe = fluid.Executor()
    exe.run(fluid.default_startup_program())
    feed = {"x": np.arange(1000, dtype="float32").reshape(1, 1000)}
    assert len({exe.run(feed=feed, fetch_list=[box])[0].item() for _ in range(5)}) == 5


def test_center_loss_moves_centres_towards_their_classes(fluid):
    x, label = fluid.data("x", [None, 2]), fluid.data("label", [None, 1], "int64")
    attr = fluid.ParamAttr(name="centers", initializer=fluid.initializer.Constant(0.0))
    loss = fluid.layers.center_loss(x, label, num_classes=3, alpha=0.5, param_attr=attr)
    fluid.optimizer.SGD(0.1).minimize(fluid.layers.mean(loss))
    (got,) = run(fluid, {"x": np.array([[2, 0], [4, 2]], "float32"), "label": np.array([[1], [1]])}, [loss])
    np.testing.assert_allclose(got, [[2], [10]])
    centers = np.array(fluid.global_scope().find_var("centers").get_tensor())
    np.testing.assert_allclose(centers, [[0, 0], [0.5 * 6 / 3, 0.5 * 2 / 3], [0, 0]], rtol=1e-6)


def test_a_data_norm_learns_from_the_sums_of_the_batch(fluid):
    x = fluid.data("x", [None, 2])
    y = fluid.layers.data_norm(x, name="norm", param_attr={"batch_size": 4.0, "batch_sum": 2.0, "batch_square": 1.0})
    fluid.optimizer.SGD(1.0).minimize(fluid.layers.mean(y))
    rows = np.array([[1, 2], [3, 4]], "float32")
    (got,) = run(fluid, {"x": rows}, [y])
    np.testing.assert_allclose(got, (rows - 0.5) * 2)
    learned = [
        np.array(fluid.global_scope().find_var("norm." + name).get_tensor()).tolist()
        for name in ("batch_size", "batch_sum", "batch_square_sum")
    ]
    np.testing.assert_allclose(
        learned, [[4 - 2] * 2, [2 - 4, 2 - 6], [1 - (0.25 + 6.25 + 2e-5), 1 - (2.25 + 12.25 + 2e-5)]], rtol=1e-5
    )


def test_filter_by_instag_drops_other_instances(fluid):
    ins = fluid.data("ins", [None, 2])
    ins.stop_gradient = False
    tags = fluid.data("tags", [None, 1], "int64", lod_level=1)
    out, weight = fluid.layers.filter_by_instag(ins, tags, fluid.data("wanted", [1], "int64"), is_lod=False)
    (grad,) = fluid.gradients(fluid.layers.reduce_sum(out), [ins])
    feed = {
        "ins": rand(3, 2),
        "wanted": np.array([2]),
        "tags": fluid.create_lod_tensor(np.array([[1], [2], [1], [2]]), [[2, 1, 1]], fluid.CPUPlace()),
    }
    got = [np.array(one) for one in fluid.Executor().run(feed=feed, fetch_list=[out, weight, grad], return_numpy=False)]
    np.testing.assert_array_equal(got[0], rand(3, 2)[[0, 2]])
    np.testing.assert_array_equal(got[1], [[1], [1]])
    np.testing.assert_array_equal(got[2], [[1, 1], [0, 0], [1, 1]])


def test_bilinear_product_and_position_encoding_equal_numpy(fluid):
    x, y = fluid.data("x", [None, 3]), fluid.data("y", [None, 4])
    weight = rand(2, 3, 4, seed=4)
    attr = fluid.ParamAttr(initializer=fluid.initializer.NumpyArrayInitializer(weight))
    bias = fluid.ParamAttr(initializer=fluid.initializer.Constant(0.5))
    product = fluid.layers.bilinear_tensor_product(x, y, size=2, param_attr=attr, bias_attr=bias)
    words = fluid.data("words", [None, 3, 4])
    placed = fluid.layers.add_position_encoding(words, alpha=2.0, beta=1.0)
    feed = {"x": SQUARE[:, :3], "y": SQUARE + 1, "words": X}
    got = run(fluid, feed, [product, placed])
    np.testing.assert_allclose(got[0], np.einsum("ri,kij,rj->rk", feed["x"], weight, feed["y"]) + 0.5, rtol=1e-4)
    angles = np.arange(3)[:, None] / 10000.0 ** np.array([0, 1])
    np.testing.assert_allclose(got[1], 2 * X + np.concatenate([np.sin(angles), np.cos(angles)], 1), rtol=1e-5)


def test_similarity_focus_marks_the_largest_of_rows_and_columns(fluid):
    x = np.array([[[[0.5, 0.7], [0.6, 0.5], [0.4, 0.6]], [[0.4, 0.9], [1.0, 0.4], [0.8, 0.5]]]], "float32")
    (mask,) = run(fluid, {"x": x}, [fluid.layers.similarity_focus(fluid.data("x", [None, 2, 3, 2]), 1, [0])])
    np.testing.assert_array_equal(mask, [[[[0, 1], [1, 0], [0, 0]]] * 2])


def test_dice_and_npair_losses_equal_numpy(fluid):
    shares = np.array([[[0.25, 0.75], [0.5, 0.5]]], "float32")
    label = np.array([[[1], [0]]])
    a, b = rand(3, 4), rand(3, 4, seed=5)
    classes = np.array([1, 2, 1], "float32")
    dice = fluid.layers.dice_loss(fluid.data("s", [None, 2, 2]), fluid.data("l", [None, 2, 1], "int64"))
    pair = fluid.layers.npair_loss(fluid.data("a", [3, 4]), fluid.data("b", [3, 4]), fluid.data("c", [3]), l2_reg=0.5)
    got = run(fluid, {"s": shares, "l": label, "a": a, "b": b, "c": classes}, [dice, pair])
    np.testing.assert_allclose(got[0], [1 - 2 * 1.25 / (4 + 1e-5)], rtol=1e-5)
    same = classes[:, None] == classes
    weights = same / same.sum(1, keepdims=True)
    scores = a @ b.T
    entropy = (weights * (np.log(np.exp(scores).sum(1, keepdims=True)) - scores)).sum(1, keepdims=True)
    lengths = ((a**2).sum(1).mean() + (b**2).sum(1).mean()) * 0.25 * 0.5
    np.testing.assert_allclose(got[1], [lengths + (weights * entropy).sum(0).mean()], rtol=1e-5)


def test_wrong_arguments_are_reported(fluid):
    L, x = fluid.layers, fluid.data("x", [None, 3])
    for call, error in [
        (lambda: L.t(fluid.data("deep", [1, 2, 3])), "t: the rank of input .3. must be at most 2"),
        (lambda: L.unstack(x), "extent 0 of x"),
        (lambda: L.multiplex([x], fluid.data("which", [None, 1], "int32")), "at least 2"),
        (lambda: L.shard_index(fluid.data("id", [None, 1], "int64"), 10, 2, 2), "shard_id"),
        (lambda: L.crop_tensor(x, [0, 1]), "shape holds 0"),
        (lambda: L.crop_tensor(x, [1, 1], [0, -1]), "offsets holds -1"),
        (lambda: L.clamp(x), "one of min and max"),
        (lambda: L.mish(x, threshold=0), "threshold"),
        (lambda: L.randint(3, 2), "must be below high"),
        (lambda: L.randperm(0), "n must be at least 1"),
        (lambda: L.tril(fluid.data("row", [3])), "at least 2"),
        (lambda: L.similarity_focus(x, 4, [0]), "axis must be 1, 2 or 3"),
    ]:
        with pytest.raises(ValueError, match=error):
            call()
    for call in [lambda: L.crop(x), lambda: L.eye(-1), lambda: L.flip(x, 0), lambda: L.addcmul(x, x, x, value=1),
                 lambda: L.scatter(x, x, [1.0]), lambda: L.zeros_like(3)]:  # yapf: disable
        with pytest.raises(TypeError):
            call()


class TestDistributions:
    def test_uniform_distribution_equals_numpy(self, fluid):
        u = fluid.layers.Uniform(low=[1.0, 2.0], high=[3.0, 4.5])
        value = fluid.data("value", [2])
        got = run(fluid, {"value": np.array([2, 5], "float32")}, [u.sample([50]), u.entropy(), u.log_prob(value)])
        assert got[0].shape == (50, 2)
        assert (got[0] >= [1, 2]).all() and (got[0] < [3, 4.5]).all() and got[0][:, 0].min() < 1.5
        np.testing.assert_allclose(got[1], np.log([2, 2.5]), rtol=1e-6)
        np.testing.assert_allclose(got[2], [-np.log(2), -np.inf], rtol=1e-6)
        assert fluid.layers.Uniform(0.0, 1.0).sample([4]).shape == (4,)

    def test_normal_distribution_equals_numpy(self, fluid):
        a, b = fluid.layers.Normal([0.0, 1.0], [1.0, 2.0]), fluid.layers.Normal([1.0, 1.0], [3.0, 1.0])
        value = fluid.data("value", [2])
        got = run(
            fluid,
            {"value": np.array([2, 5], "float32")},
            [a.sample([400], seed=2), a.entropy(), a.log_prob(value), a.kl_divergence(b)],
        )
        np.testing.assert_allclose(got[0].mean(0), [0, 1], atol=0.5)
        np.testing.assert_allclose(got[1], 0.5 + 0.5 * np.log(2 * np.pi) + np.log([1, 2]), rtol=1e-6)
        np.testing.assert_allclose(
            got[2], [-2 - np.log(2 * np.pi) / 2, -2 - np.log(2) - np.log(2 * np.pi) / 2], rtol=1e-6
        )
        ratio = np.array([1 / 9, 4])
        np.testing.assert_allclose(got[3], 0.5 * (ratio + [1 / 9, 0] - 1 - np.log(ratio)), rtol=1e-5)

    def test_samples_of_variable_parameters_have_the_batch_shape(self, fluid):
        loc, scale = fluid.data("loc", [None, 2]), fluid.data("scale", [None, 2])
        feed = {"loc": np.zeros((3, 2), "float32"), "scale": np.ones((3, 2), "float32")}
        drawn = [one(loc, scale).sample([5]) for one in (fluid.layers.Normal, fluid.layers.Uniform)]
        got = run(fluid, feed, drawn)
        assert [one.shape for one in got] == [(5, 3, 2)] * 2
        assert (got[1] >= 0).all() and (got[1] < 1).all()

    def test_categorical_distribution_equals_numpy(self, fluid):
        p, q = rand(2, 3), rand(2, 3, seed=3)
        a, b = (fluid.layers.Categorical(fluid.data(name, [None, 3])) for name in "pq")
        got = run(fluid, {"p": p, "q": q}, [a.entropy(), a.kl_divergence(b)])
        p, q = (np.exp(one) / np.exp(one).sum(1, keepdims=True) for one in (p, q))
        np.testing.assert_allclose(got[0], -(p * np.log(p)).sum(1, keepdims=True), rtol=1e-5)
        np.testing.assert_allclose(got[1], (p * np.log(p / q)).sum(1, keepdims=True), rtol=1e-4, atol=1e-6)

    def test_multivariate_normal_equals_numpy(self, fluid):
        with pytest.warns(UserWarning, match="float32"):
            a = fluid.layers.MultivariateNormalDiag([0.3, 0.5], [[0.4, 0], [0, 0.5]])
            b = fluid.layers.MultivariateNormalDiag([0.2, 0.4], [[0.3, 0], [0, 0.4]])
        got = run(fluid, {}, [a.entropy(), a.kl_divergence(b)])
        np.testing.assert_allclose(got[0], [0.5 * (2 * (1 + np.log(2 * np.pi)) + np.log(0.2))], rtol=1e-5)
        expected = 0.5 * (0.4 / 0.3 + 0.5 / 0.4 + 0.01 / 0.3 + 0.01 / 0.4 - 2 + np.log(0.12) - np.log(0.2))
        np.testing.assert_allclose(got[1], [expected], rtol=1e-4)

    def test_wrong_arguments_are_reported(self, fluid):
        with pytest.raises(TypeError, match="Normal: loc must be"):
            fluid.layers.Normal("a", 1.0)
        with pytest.raises(ValueError, match="if one of low, high is a Variable, all must be"):
            fluid.layers.Uniform(fluid.data("x", [1]), 1.0)
        with pytest.raises(TypeError, match="other must be a Normal"):
            fluid.layers.Normal(0.0, 1.0).kl_divergence(3)
