"""penstock.compat.mxnet: arrays, stores and optimizers under MXNet's names, and what it refuses."""

import os
import subprocess
import sys

import numpy as np
import penstock.compat
import pytest
from dmlc_processes import Dmlc
from penstock.compat import mxnet as mx


def test_the_alias_is_the_same_package():
    code = "import mxnet; from mxnet import kv; import mxnet.kvstore_server; print(mxnet.__name__, kv is mxnet.kvstore)"
    environment = penstock.compat.environment({"PATH": ""})
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True)
    assert done.stdout == "penstock.compat.mxnet True\n", done.stderr


def test_arrays_have_mxnets_types_and_operators():
    a = mx.nd.array([[1, 2], [3, 4]])
    assert a.dtype == np.float32 and mx.nd.array(np.arange(2)).dtype == np.float32
    a[:] = a * 2 + 1
    assert (2 - a).asnumpy().tolist() == [[-1, -3], [-5, -7]] and (a == 3).asnumpy().sum() == 1
    b = a.copy()
    a += b
    assert a[1].asnumpy().tolist() == [14, 18] and b.shape == (2, 2) and float(a.sum()) == 48
    assert a.astype("float16").dtype == np.float16 and len(a) == 2 and a.reshape(-1).shape == (4,)
    with pytest.raises(ValueError):
        a.asscalar()


def test_rows_keep_their_place():
    rows = mx.nd.array([[0, 0], [5, 6], [0, 0]]).tostype("row_sparse")
    assert rows.indices.asnumpy().tolist() == [1] and rows.data.shape == (1, 2) and rows.shape == (3, 2)
    out = mx.nd.sparse.zeros("row_sparse", (3, 2))
    rows.copyto(out)
    assert (out.asnumpy() == rows.tostype("default").asnumpy()).all()
    assert (rows - 1).asnumpy().tolist() == [[-1, -1], [4, 5], [-1, -1]] and rows.size == 6 and rows.ndim == 2
    assert rows.retain(mx.nd.array([0])).indices.shape == (0,)


def test_errors_are_mxnets():
    kv = mx.kv.create("local")
    kv.init(3, mx.nd.ones(2))
    with pytest.raises(mx.MXNetError, match="E-kv-key-again"):
        kv.init(3, mx.nd.ones(2))
    with pytest.raises(AssertionError):
        kv.pull(3)
    with pytest.raises(TypeError):
        mx.kv.create(None)
    with pytest.raises(NotImplementedError, match="gluon"):
        mx.gluon  # noqa: B018
    with pytest.raises(AttributeError):
        mx.nothing  # noqa: B018


def test_an_updater_gets_ndarrays_and_mxnets_keys():
    seen = []

    def update(key, total, stored):
        seen.append(key)
        stored += total * 2

    kv = mx.kv.create("device")
    kv.init("a", mx.nd.zeros((2,)))
    kv._set_updater(update)
    kv.push("a", [mx.nd.ones((2,), mx.cpu(0)), mx.nd.ones((2,), mx.cpu(1))])
    out = mx.nd.empty((2,))
    kv.pull("a", out=out)
    assert out.asnumpy().tolist() == [4, 4] and seen == [b"a"]


def test_pushpull_overwrites_the_values_without_out():
    kv = mx.kv.create("local")
    kv.init(1, mx.nd.zeros((2,)))
    values = [mx.nd.ones((2,)), mx.nd.ones((2,)) * 2]
    kv.pushpull(1, values)
    assert [one.asnumpy().tolist() for one in values] == [[3, 3], [3, 3]]
    out = mx.nd.zeros((2,))
    kv.broadcast(2, mx.nd.ones((2,)), out)
    assert out.asnumpy().tolist() == [1, 1]


MXNET = """
    import mxnet as mx
    kv = mx.kv.create('dist_sync')
    shape = (2, 3)
    kv.init('3', mx.nd.ones(shape))
    kv.init('9', mx.nd.ones(shape).tostype('row_sparse'))
    kv.set_optimizer(mx.optimizer.create('test', rescale_grad=2))
    kv._barrier()
    for i in range(3):
        kv.push('3', mx.nd.ones(shape) * (kv.rank + 1), priority=-i)
        kv.push('9', mx.nd.sparse.row_sparse_array((mx.nd.ones((1, 3)), [kv.rank]), shape=shape))
    out, rows = mx.nd.zeros(shape), mx.nd.sparse.zeros('row_sparse', shape)
    kv.pull('3', out=out)
    kv.row_sparse_pull('9', out=rows, row_ids=mx.nd.array([1, 0, 1]))
    print(kv.rank, kv.num_workers, out.asnumpy()[0, 0], rows.asnumpy()[:, 0].tolist())
"""


def test_a_script_for_mxnet_runs_in_every_role(tmp_path):
    path = penstock.compat.environment(os.environ)["PYTHONPATH"]
    with Dmlc(tmp_path, MXNET, workers=2, servers=2, PYTHONPATH=path) as job:
        ends = job.ends()
    assert [end[1] for end in ends] == [0] * 5, "\n".join(end[3] for end in ends)
    outputs = [end[2].strip() for end in ends if end[0] == "worker"]
    assert outputs == ["0 2 19.0 [7.0, 7.0]", "1 2 19.0 [7.0, 7.0]"]
