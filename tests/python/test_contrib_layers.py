"""Layers of fluid.contrib: matrix columns, text matching, tree lookups, random shuffles."""

import numpy as np
import pytest


def run(fluid, feed, fetch, return_numpy=True):
    exe = fluid.Executor()
    exe.run(fluid.default_startup_program())
    return exe.run(feed=feed, fetch_list=fetch, return_numpy=return_numpy)


def texts(fluid, array, lengths):
    return fluid.create_lod_tensor(array, [lengths], fluid.CPUPlace())


def given(fluid, array, name=None):
    return fluid.ParamAttr(name=name, initializer=fluid.initializer.NumpyArrayInitializer(np.asarray(array)))


A = np.random.RandomState(0).randn(3, 4).astype("float32")
B = np.random.RandomState(1).randn(3, 4).astype("float32")


def test_partial_layers_take_some_columns(fluid):
    L = fluid.contrib.layers
    x, y = fluid.data("x", [None, 4]), fluid.data("y", [None, 4])
    got = run(fluid, {"x": A, "y": B}, [L.partial_concat([x, y], 1, 2), L.partial_sum([x, y], -3)])
    np.testing.assert_array_equal(got[0], np.concatenate([A[:, 1:3], B[:, 1:3]], 1))
    np.testing.assert_allclose(got[1], A[:, 1:] + B[:, 1:], rtol=1e-6)


@pytest.mark.parametrize("is_sparse", [False, True])
def test_fused_embedding_seq_pool_trains(fluid, is_sparse):
    ids = fluid.data("ids", [None, 1], "int64", lod_level=1)
    table = np.arange(10, dtype="float32").reshape(5, 2)
    out = fluid.contrib.layers.fused_embedding_seq_pool(
        ids, [5, 2], is_sparse=is_sparse, padding_idx=-2, param_attr=given(fluid, table, "table")
    )
    fluid.optimizer.SGD(1.0).minimize(fluid.layers.reduce_sum(out))
    feed = {"ids": texts(fluid, np.array([[1], [3], [1], [4]]), [3, 1])}
    (got,) = run(fluid, feed, [out])
    np.testing.assert_array_equal(got, [table[1] * 2, table[4]])
    uses = np.array([0, 2, 0, 0, 1])
    learned = np.array(fluid.global_scope().find_var("table").get_tensor())
    np.testing.assert_array_equal(learned, table - uses[:, None])


def test_match_matrix_and_topk_pooling_equal_numpy(fluid):
    L = fluid.contrib.layers
    x, y = (fluid.data(name, [None, 4], lod_level=1) for name in "xy")
    weight = np.random.RandomState(2).randn(4, 2, 4).astype("float32")
    match, _ = L.match_matrix_tensor(x, y, 2, param_attr=given(fluid, weight))
    pooled = L.sequence_topk_avg_pooling(match, x, y, topks=[1, 2], channel_num=2)
    feed = {"x": texts(fluid, A, [1, 2]), "y": texts(fluid, B, [2, 1])}
    got = run(fluid, feed, [match, pooled], return_numpy=False)
    pairs = [(A[:1], B[:2]), (A[1:], B[2:])]
    matrices = [np.einsum("ri,itj,sj->trs", a, weight, b) for a, b in pairs]
    np.testing.assert_allclose(np.array(got[0]).ravel(), np.concatenate([m.ravel() for m in matrices]), rtol=1e-4)
    assert got[0].lod() == [[0, 4, 8]] and got[1].lod() == [[0, 1, 3]]
    rows = []
    for m in matrices:
        best = -np.sort(-m, axis=2)
        means = np.stack([best[:, :, 0], best[:, :, :2].sum(2) / 2], 2)  # channel, row, k
        rows.extend(means.transpose(1, 0, 2).reshape(m.shape[1], -1))
    np.testing.assert_allclose(np.array(got[1]), rows, rtol=1e-4)


def test_shuffle_batch_permutes_rows_anew_in_each_run(fluid):
    x = fluid.data("x", [100, 1])
    out = fluid.contrib.layers.shuffle_batch(x, seed=3)
    exe = fluid.Executor()
    exe.run(fluid.default_startup_program())
    rows = np.arange(100, dtype="float32").reshape(100, 1)
    orders = [exe.run(feed={"x": rows}, fetch_list=[out])[0].ravel().tolist() for _ in range(2)]
    assert orders[0] != orders[1] and sorted(orders[0]) == sorted(orders[1]) == list(range(100))


TREE = [
    [0, 0, 0, 1, 2],
    [0, 1, 0, 3, 4],
    [0, 1, 0, 5, 6],
    [0, 2, 1, 0, 0],
    [1, 2, 1, 0, 0],
    [2, 2, 2, 0, 0],
    [3, 2, 2, 0, 0],
]


@pytest.mark.parametrize("kind", ["int32", "int64"])
def test_tdm_child_returns_the_children_of_nodes(fluid, kind):
    tree = given(fluid, np.array(TREE, "int32"), "tree")
    child, mask = fluid.contrib.layers.tdm_child(fluid.data("x", [None, 1], kind), 7, 2, param_attr=tree)
    got = run(fluid, {"x": np.array([[1], [2], [3]], kind)}, [child, mask])
    assert got[0].tolist() == [[[3, 4]], [[5, 6]], [[0, 0]]]
    assert got[1].tolist() == [[[0, 1]], [[1, 1]], [[0, 0]]]


def test_tdm_sampler_draws_negatives_of_each_layer(fluid):
    travel = given(fluid, np.array([[0, 0], [1, 4], [2, 5]], "int32"), "travel")
    layer = given(fluid, np.array([[1], [2], [3], [4], [5], [6]], "int32"), "layer")
    x = fluid.data("x", [None, 1], "int32")
    nodes, labels, mask = fluid.contrib.layers.tdm_sampler(x, [1, 3], [2, 4], 3, travel, layer)
    got = run(fluid, {"x": np.array([[1], [2], [0]], "int32")}, nodes + labels + mask)
    assert got[0].tolist() == [[[1], [2]], [[2], [1]], [[0], [0]]]
    assert [row.ravel().tolist()[0] for row in got[1]] == [4, 5, 0]
    assert [sorted(row.ravel()) for row in got[1]] == [[3, 4, 5, 6], [3, 4, 5, 6], [0, 0, 0, 0]]
    assert got[2].tolist() == [[[1], [0]], [[1], [0]], [[0], [0]]]
    assert got[5][:, 0, 0].tolist() == [1, 1, 0]


def test_wrong_arguments_are_reported(fluid):
    L, x = fluid.contrib.layers, fluid.data("x", [None, 4])
    with pytest.raises(ValueError, match="matrices of the same width"):
        L.match_matrix_tensor(x, fluid.data("y", [None, 3]), 2)
    with pytest.raises(ValueError, match="neg_samples_num_list has 1 layers, but layer_node_num_list has 2"):
        L.tdm_sampler(x, [1], [2, 3], 2)
    with pytest.raises(ValueError, match="3 negative nodes cannot be drawn from layer 1, which has 3 nodes"):
        L.tdm_sampler(x, [1, 3], [2, 3], 2)
    with pytest.raises(TypeError, match="partial_sum: input must be"):
        L.partial_sum(3)


@pytest.mark.parametrize("functors", ["relu,elementwise_add", ["elementwise_mul", "tanh"]])
def test_fused_elemwise_activation_equals_two_ops(fluid, functors):
    L = fluid.layers
    x, y = fluid.data("x", [None, 4]), fluid.data("y", [4])
    x.stop_gradient = y.stop_gradient = False
    fused = fluid.contrib.layers.fused_elemwise_activation(x, y, functors)
    apart = L.relu(x + y) if isinstance(functors, str) else x * L.tanh(y)
    grads = [fluid.gradients(L.reduce_sum(L.square(out)), [x, y]) for out in (fused, apart)]
    got = run(fluid, {"x": A, "y": B[0]}, [fused] + grads[0] + [apart] + grads[1])
    for one, expected in zip(got[:3], got[3:]):
        np.testing.assert_allclose(one, expected, rtol=1e-5, atol=1e-6)


def test_fused_elemwise_activation_requires_two_functions(fluid):
    x = fluid.data("x", [None, 4])
    with pytest.raises(ValueError, match="must hold two names"):
        fluid.contrib.layers.fused_elemwise_activation(x, x, ["relu"])
    with pytest.raises(TypeError, match="x"):
        fluid.contrib.layers.fused_elemwise_activation(A, x, ["relu", "elementwise_add"])


def test_tree_conv_covers_the_children_of_a_node(fluid):
    nodes, edges = fluid.data("nodes", [None, 3, 4]), fluid.data("edges", [None, 2, 2], "int32")
    weight = np.random.RandomState(2).randn(4, 3, 2, 1).astype("float32")
    out = fluid.contrib.layers.tree_conv(nodes, edges, 2, act=None, bias_attr=False, param_attr=given(fluid, weight))
    assert out.shape == (-1, 3, 2, 1)
    (got,) = run(fluid, {"nodes": A[None], "edges": np.array([[[1, 2], [1, 3]]], "int32")}, [out])
    left, right, top = weight.transpose(1, 0, 2, 3).reshape(3, 4, 2)
    children = A[1] @ (top / 2 + right / 2) + A[2] @ (top / 2 + left / 2 + right / 4)
    np.testing.assert_allclose(got[0, :, :, 0], [A[0] @ top + children, A[1] @ top, A[2] @ top], rtol=1e-4)


def test_var_conv_2d_convolves_images_of_different_sizes(fluid):
    x = fluid.data("x", [None, 1], lod_level=1)
    row, col = (fluid.data(name, [None, 1], lod_level=1) for name in ("row", "col"))
    weight = np.random.RandomState(2).randn(2, 9).astype("float32")
    out = fluid.contrib.layers.var_conv_2d(x, row, col, 1, 2, filter_size=3, param_attr=given(fluid, weight))
    image = fluid.data("image", [1, 1, 3, 4])
    apart = fluid.layers.conv2d(
        image, 2, 3, padding=1, bias_attr=False, param_attr=given(fluid, weight.reshape(2, 1, 3, 3))
    )
    ones = np.ones((5, 1), "float32")
    feed = {
        "x": texts(fluid, np.concatenate([A.reshape(12, 1), ones[:2]]), [12, 2]),
        "row": texts(fluid, ones, [3, 2]),
        "col": texts(fluid, ones, [4, 1]),
        "image": A[None, None],
    }
    got = run(fluid, feed, [out, apart], return_numpy=False)
    assert got[0].lod() == [[0, 24, 28]]
    np.testing.assert_allclose(np.array(got[0])[:24].ravel(), np.array(got[1]).ravel(), rtol=1e-4, atol=1e-6)


def test_var_conv_2d_checks_the_sizes_of_images(fluid):
    x, row, col = (fluid.data(name, [None, 1], lod_level=1) for name in ("x", "row", "col"))
    out = fluid.contrib.layers.var_conv_2d(x, row, col, 1, 2, filter_size=[1, 1], stride=[1, 1])
    feed = {name: texts(fluid, A.reshape(12, 1)[:3], [3]) for name in ("x", "row", "col")}
    with pytest.raises(fluid.core.EnforceNotMet, match="which are not 1 channels of 3 rows and 3 columns"):
        run(fluid, feed, [out])


def test_multiclass_nms2_returns_indices(fluid):
    boxes, scores = fluid.data("boxes", [1, 3, 4]), fluid.data("scores", [1, 1, 3])
    found = fluid.contrib.layers.multiclass_nms2(boxes, scores, 0.1, -1, -1, background_label=-1, return_index=True)
    alone = fluid.contrib.layers.multiclass_nms2(boxes, scores, 0.1, -1, -1, background_label=-1)
    places = np.array([[[0, 0, 1, 1], [5, 5, 6, 6], [0, 0, 1, 1.1]]], "float32")
    feed = {"boxes": places, "scores": np.array([[[0.5, 0.9, 0.6]]], "float32")}
    got = run(fluid, feed, list(found) + [alone], return_numpy=False)
    np.testing.assert_allclose(np.array(got[0]), [[0, 0.9, 5, 5, 6, 6], [0, 0.6, 0, 0, 1, 1.1]], rtol=1e-6)
    np.testing.assert_array_equal(np.array(got[1]), [[1], [2]])
    np.testing.assert_array_equal(np.array(got[2]), np.array(got[0]))
