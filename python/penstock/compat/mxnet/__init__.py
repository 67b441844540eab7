"""The part of MXNet 1.9 that scripts for its KVStore use: `import penstock.compat.mxnet as mx`.

    kv = mx.kv.create('dist_sync')
    kv.init(3, mx.nd.ones((2, 3)))
    kv.push(3, mx.nd.ones((2, 3)) * 8)
    out = mx.nd.zeros((2, 3))
    kv.pull(3, out=out)
    print(out.asnumpy())

The folder of `python -m penstock.compat --path` on PYTHONPATH makes `import mxnet` mean this package. As in MXNet, its
import serves and ends the process where DMLC_ROLE is server or scheduler. There are kv (kvstore), kvstore_server, nd
for arrays, optimizer, lr_scheduler, and contexts, which all are this process's memory. Networks (sym, gluon, mod) are
not part of it; their use is an error.
"""

from __future__ import annotations

from typing import Any

from penstock._src.base.errors import not_built
from penstock.compat.mxnet import base, context, kvstore, kvstore_server, lr_scheduler, ndarray, optimizer, test_utils
from penstock.compat.mxnet.base import MXNetError
from penstock.compat.mxnet.context import Context, cpu, current_context, gpu, num_gpus

nd, kv, random = ndarray, kvstore, ndarray.random
__version__ = "1.9.1"
NOT_BUILT = (
    "autograd callback contrib executor gluon image init initializer io metric mod model module mon monitor np npx "
    "operator profiler recordio rnn rtc sym symbol viz visualization"
).split()

__all__ = [
    "Context",
    "MXNetError",
    "base",
    "context",
    "cpu",
    "current_context",
    "gpu",
    "kv",
    "kvstore",
    "kvstore_server",
    "lr_scheduler",
    "nd",
    "ndarray",
    "num_gpus",
    "optimizer",
    "random",
    "test_utils",
]


def __getattr__(name: str) -> Any:
    if name in NOT_BUILT:
        raise not_built(
            f"mxnet.{name} is not part of penstock.compat.mxnet, which has KVStore, arrays and optimizers; build "
            "networks with penstock.fluid or another library, and exchange their gradients through mx.kv"
        )
    raise AttributeError(f"module {__name__} has no attribute {name}")


kvstore_server.serve_if_asked()
