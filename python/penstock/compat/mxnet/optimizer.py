"""mx.optimizer: the optimizers of penstock.kv.optimizer as classes, and updaters."""

from __future__ import annotations

from typing import Any

from penstock import kv as keyed
from penstock._src.base.errors import not_built
from penstock.compat.mxnet.base import as_mxnet_errors
from penstock.compat.mxnet.ndarray import NDArray, RowSparseNDArray
from penstock.kv.optimizer import Optimizer

_CLASSES = (
    "AdaDelta AdaGrad Adam Adamax DCASGD FTML Ftrl GroupAdaGrad LAMB LARS Nadam NAG RMSProp SGD SGLD Signum Test ccSGD"
)


def _class_of(name: str) -> type:
    def make(self, **kwargs: Any) -> None:
        with as_mxnet_errors():
            Optimizer.__init__(self, name, **kwargs)

    doc = f"""The optimizer {name!r} of penstock.kv.optimizer.create.

    Args:
        **kwargs (object): its arguments.

    Example:
        import penstock.compat.mxnet as mx
        optimizer = mx.optimizer.{name}(learning_rate=0.1)
    """
    return type(name, (Optimizer,), {"__init__": make, "__doc__": doc, "__module__": __name__})


globals().update({name: _class_of(name) for name in _CLASSES.split()})


def create(name: str, **kwargs: Any) -> Optimizer:
    """Makes an optimizer.

    Args:
        name (str): its name, see penstock.kv.optimizer.create.
        **kwargs (object): its arguments.

    Returns:
        Optimizer: for KVStore.set_optimizer.

    Example:
        import penstock.compat.mxnet as mx
        assert mx.optimizer.create('sgd', learning_rate=0.1).lr == 0.1
    """
    with as_mxnet_errors():
        return keyed.optimizer.create(name, **kwargs)


def register(klass: type) -> type:
    """Refuses optimizers of scripts: pservers run no Python.

    Args:
        klass (type): the class.

    Raises:
        NotImplementedError: always.

    Example:
        import penstock.compat.mxnet as mx
        try:
            mx.optimizer.register(object)
        except NotImplementedError as error:
            assert '_set_updater' in str(error)
    """
    raise not_built(
        f"mxnet.optimizer.register: optimizers of scripts ({klass.__name__}) do not run on pservers; "
        "KVStore._set_updater takes a function in stores of one process"
    )


class Updater:
    """Applies gradients to weights by an optimizer.

    Args:
        optimizer (Optimizer): how.

    Example:
        import penstock.compat.mxnet as mx
        weight = mx.nd.ones((2,))
        mx.optimizer.get_updater(mx.optimizer.create('sgd', learning_rate=0.5))(0, mx.nd.ones((2,)), weight)
        assert weight.asnumpy().tolist() == [0.5, 0.5]
    """

    def __init__(self, optimizer: Optimizer) -> None:
        self.optimizer = optimizer
        self._store = keyed.create("local")
        self._known = set()

    def __call__(self, index: Any, grad: NDArray, weight: NDArray) -> None:
        index = index.decode() if isinstance(index, bytes) else index
        value = weight.rows if isinstance(weight, RowSparseNDArray) else weight._ready()
        with as_mxnet_errors():
            if index in self._known:
                self._store._own_values().assign(index, value)
            else:
                self._store.init(index, value)
                self._known.add(index)
            if self._store._optimizer is not self.optimizer:
                self._store.set_optimizer(self.optimizer)
            self._store.push(index, grad.rows if isinstance(grad, RowSparseNDArray) else grad._ready())
            if isinstance(weight, NDArray) and not isinstance(weight, RowSparseNDArray):
                self._store.pull(index, out=value).wait()
            else:
                rows = self._store.row_sparse_pull(index, row_ids=range(value.shape[0]))
                weight.rows = rows


def get_updater(optimizer: Optimizer) -> Updater:
    """Makes an updater.

    Args:
        optimizer (Optimizer): what it applies.

    Returns:
        Updater: updater(index, grad, weight) changes `weight`.

    Example:
        import penstock.compat.mxnet as mx
        updater = mx.optimizer.get_updater(mx.optimizer.create('sgd'))
    """
    return Updater(optimizer)


__all__ = ["Optimizer", "Updater", "create", "get_updater", "register", *_CLASSES.split()]
