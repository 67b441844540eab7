"""Layers compute the documented values."""

import numpy as np
import pytest


def run_once(fluid, feed, fetch):
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(fluid.default_startup_program())
    return exe.run(feed=feed, fetch_list=fetch)


@pytest.mark.parametrize("layer, ids", [("layers", [[3], [0], [3]]), ("fluid", [[3, 1], [0, 3]])])
def test_an_embedding_looks_up_and_learns_rows(fluid, layer, ids):
    ids = np.array(ids, "int64")
    table = np.arange(12, dtype="float32").reshape(4, 3)
    attr = fluid.ParamAttr(name="table", initializer=fluid.initializer.NumpyArrayInitializer(table))
    var = fluid.data("ids", [None] + list(ids.shape[1:]), "int64")
    embedding = fluid.layers.embedding if layer == "layers" else fluid.embedding
    rows = embedding(var, [4, 3], padding_idx=0, param_attr=attr)
    fluid.optimizer.SGD(1.0).minimize(fluid.layers.reduce_sum(rows))
    (got,) = run_once(fluid, {"ids": ids}, [rows])
    flat = table[ids.ravel()] * (ids.ravel() != 0)[:, None]
    shape = ids.shape[:-1] if layer == "layers" else ids.shape
    np.testing.assert_array_equal(got, flat.reshape(shape + (3,)))
    uses = np.bincount(ids.ravel(), minlength=4) * (np.arange(4) != 0)
    learned = np.array(fluid.global_scope().find_var("table").get_tensor())
    np.testing.assert_array_equal(learned, table - uses[:, None])


def test_ids_of_an_embedding_are_int64(fluid):
    with pytest.raises(TypeError, match="the ids must be int64, but x is FP32"):
        fluid.layers.embedding(fluid.data("x", [None, 1]), [4, 3])


def test_attention_is_softmax_over_keys(fluid):
    q, k, v = (np.random.RandomState(i).randn(2, 3, 4).astype("float32") for i in range(3))
    names = [fluid.data(name, [2, 3, 4]) for name in "qkv"]
    (out,) = run_once(fluid, dict(zip("qkv", (q, k, v))), [fluid.nets.scaled_dot_product_attention(*names)])
    scores = np.exp(q @ k.transpose(0, 2, 1) / 2)
    np.testing.assert_allclose(out, scores / scores.sum(-1, keepdims=True) @ v, rtol=1e-5, atol=1e-7)


def test_comparison_appends_an_op_and_handles_hash_by_identity(fluid):
    x, y = fluid.data("x", [2]), fluid.data("y", [2])
    equal = x == y
    assert equal.dtype.name == "BOOL" and equal.op.type == "equal" and (x != y).op.type == "not_equal"
    assert {x: 1, y: 2}[y] == 2 and x in {x} and (x == None) is False and (x == "x") is False  # noqa: E711
