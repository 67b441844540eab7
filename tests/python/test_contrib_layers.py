"""Layers of fluid.contrib: columns of matrices, matches of texts, trees of items, orders of chance."""

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


A = np.random.RandomState(0).randn(3, 4).astype('float32')
B = np.random.RandomState(1).randn(3, 4).astype('float32')


def test_some_columns_of_matrices(fluid):
    L = fluid.contrib.layers
    x, y = fluid.data('x', [None, 4]), fluid.data('y', [None, 4])
    got = run(fluid, {'x': A, 'y': B}, [L.partial_concat([x, y], 1, 2), L.partial_sum([x, y], -3)])
    np.testing.assert_array_equal(got[0], np.concatenate([A[:, 1:3], B[:, 1:3]], 1))
    np.testing.assert_allclose(got[1], A[:, 1:] + B[:, 1:], rtol=1e-6)


@pytest.mark.parametrize('is_sparse', [False, True])
def test_pooled_rows_of_a_table_are_looked_up_and_learned(fluid, is_sparse):
    ids = fluid.data('ids', [None, 1], 'int64', lod_level=1)
    table = np.arange(10, dtype='float32').reshape(5, 2)
    out = fluid.contrib.layers.fused_embedding_seq_pool(ids, [5, 2], is_sparse=is_sparse, padding_idx=-2,
                                                        param_attr=given(fluid, table, 'table'))
    fluid.optimizer.SGD(1.0).minimize(fluid.layers.reduce_sum(out))
    feed = {'ids': texts(fluid, np.array([[1], [3], [1], [4]]), [3, 1])}
    got, = run(fluid, feed, [out])
    np.testing.assert_array_equal(got, [table[1] * 2, table[4]])
    uses = np.array([0, 2, 0, 0, 1])
    learned = np.array(fluid.global_scope().find_var('table').get_tensor())
    np.testing.assert_array_equal(learned, table - uses[:, None])


def test_words_of_texts_match_and_the_best_matches_are_pooled(fluid):
    L = fluid.contrib.layers
    x, y = (fluid.data(name, [None, 4], lod_level=1) for name in 'xy')
    weight = np.random.RandomState(2).randn(4, 2, 4).astype('float32')
    match, _ = L.match_matrix_tensor(x, y, 2, param_attr=given(fluid, weight))
    pooled = L.sequence_topk_avg_pooling(match, x, y, topks=[1, 2], channel_num=2)
    feed = {'x': texts(fluid, A, [1, 2]), 'y': texts(fluid, B, [2, 1])}
    got = run(fluid, feed, [match, pooled], return_numpy=False)
    pairs = [(A[:1], B[:2]), (A[1:], B[2:])]
    matrices = [np.einsum('ri,itj,sj->trs', a, weight, b) for a, b in pairs]
    np.testing.assert_allclose(np.array(got[0]).ravel(), np.concatenate([m.ravel() for m in matrices]), rtol=1e-4)
    assert got[0].lod() == [[0, 4, 8]] and got[1].lod() == [[0, 1, 3]]
    rows = []
    for m in matrices:
        best = -np.sort(-m, axis=2)
        means = np.stack([best[:, :, 0], best[:, :, :2].sum(2) / 2], 2)      # channel, row, k
        rows.extend(means.transpose(1, 0, 2).reshape(m.shape[1], -1))
    np.testing.assert_allclose(np.array(got[1]), rows, rtol=1e-4)


def test_a_shuffled_batch_has_its_rows_and_another_order_in_each_run(fluid):
    x = fluid.data('x', [100, 1])
    out = fluid.contrib.layers.shuffle_batch(x, seed=3)
    exe = fluid.Executor()
    exe.run(fluid.default_startup_program())
    rows = np.arange(100, dtype='float32').reshape(100, 1)
    orders = [exe.run(feed={'x': rows}, fetch_list=[out])[0].ravel().tolist() for _ in range(2)]
    assert orders[0] != orders[1] and sorted(orders[0]) == sorted(orders[1]) == list(range(100))


TREE = [[0, 0, 0, 1, 2], [0, 1, 0, 3, 4], [0, 1, 0, 5, 6], [0, 2, 1, 0, 0], [1, 2, 1, 0, 0], [2, 2, 2, 0, 0],
        [3, 2, 2, 0, 0]]


@pytest.mark.parametrize('kind', ['int32', 'int64'])
def test_children_of_nodes(fluid, kind):
    tree = given(fluid, np.array(TREE, 'int32'), 'tree')
    child, mask = fluid.contrib.layers.tdm_child(fluid.data('x', [None, 1], kind), 7, 2, param_attr=tree)
    got = run(fluid, {'x': np.array([[1], [2], [3]], kind)}, [child, mask])
    assert got[0].tolist() == [[[3, 4]], [[5, 6]], [[0, 0]]]
    assert got[1].tolist() == [[[0, 1]], [[1, 1]], [[0, 0]]]


def test_nodes_beside_the_way_to_an_item(fluid):
    travel = given(fluid, np.array([[0, 0], [1, 4], [2, 5]], 'int32'), 'travel')
    layer = given(fluid, np.array([[1], [2], [3], [4], [5], [6]], 'int32'), 'layer')
    x = fluid.data('x', [None, 1], 'int32')
    nodes, labels, mask = fluid.contrib.layers.tdm_sampler(x, [1, 3], [2, 4], 3, travel, layer)
    got = run(fluid, {'x': np.array([[1], [2], [0]], 'int32')}, nodes + labels + mask)
    assert got[0].tolist() == [[[1], [2]], [[2], [1]], [[0], [0]]]
    assert [row.ravel().tolist()[0] for row in got[1]] == [4, 5, 0]
    assert [sorted(row.ravel()) for row in got[1]] == [[3, 4, 5, 6], [3, 4, 5, 6], [0, 0, 0, 0]]
    assert got[2].tolist() == [[[1], [0]], [[1], [0]], [[0], [0]]]
    assert got[5][:, 0, 0].tolist() == [1, 1, 0]


def test_wrong_arguments_are_named(fluid):
    L, x = fluid.contrib.layers, fluid.data('x', [None, 4])
    with pytest.raises(ValueError, match='matrices of one width'):
        L.match_matrix_tensor(x, fluid.data('y', [None, 3]), 2)
    with pytest.raises(ValueError, match='of 1 layers in neg_samples_num_list, but of 2'):
        L.tdm_sampler(x, [1], [2, 3], 2)
    with pytest.raises(ValueError, match='of layer 1 3 other nodes are to be drawn; it has 3'):
        L.tdm_sampler(x, [1, 3], [2, 3], 2)
    with pytest.raises(TypeError, match='partial_sum: input must be'):
        L.partial_sum(3)
