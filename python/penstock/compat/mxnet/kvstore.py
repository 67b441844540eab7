"""mx.kv: KVStore over penstock.kv, with NDArrays, and errors as MXNetError."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from penstock import kv as keyed
from penstock.compat.mxnet.base import as_mxnet_errors
from penstock.compat.mxnet.ndarray import NDArray, RowSparseNDArray
from penstock.kv.optimizer import Optimizer

__all__ = ["KVStore", "KVStoreBase", "create"]


def _arrays(value: Any) -> Any:
    """Returns what penstock.kv takes for NDArrays, or lists of them."""
    if isinstance(value, (list, tuple)):
        return [_arrays(one) for one in value]
    if isinstance(value, RowSparseNDArray):
        return value.rows
    return value._ready() if isinstance(value, NDArray) else value


def _flat(value: Any) -> list[Any]:
    if isinstance(value, (list, tuple)):
        return [one for part in value for one in _flat(part)]
    return [] if value is None else [value]


class KVStore:
    """Values by key, as MXNet's KVStore has them. create() returns one.

    Args:
        store (penstock.kv.KVStore): holds the values.

    Example:
        import penstock.compat.mxnet as mx
        kv = mx.kv.create('local')
        kv.init(3, mx.nd.ones((2, 3)))
        kv.push(3, [mx.nd.ones((2, 3)), mx.nd.ones((2, 3))])
        out = mx.nd.zeros((2, 3))
        kv.pull(3, out=out)
        assert (out.asnumpy() == 2).all()
    """

    OPTIMIZER = "optimizer"

    def __init__(self, store: keyed.KVStore) -> None:
        self._store = store

    @property
    def type(self) -> str:
        """The store's type."""
        return self._store.type

    @property
    def rank(self) -> int:
        """The number of this worker."""
        return self._store.rank

    @property
    def num_workers(self) -> int:
        """The number of workers."""
        return self._store.num_workers

    def init(self, key: Any, value: Any) -> None:
        """Gives keys their initial values.

        Args:
            key (int | str | list): the keys.
            value (NDArray | list): their values.
        """
        with as_mxnet_errors():
            self._store.init(key, _arrays(value))

    def push(self, key: Any, value: Any, priority: int = 0) -> None:
        """Adds values to keys.

        Args:
            key (int | str | list): the keys.
            value (NDArray | list): the values.
            priority (int): of pushes that wait to be sent, those of higher priority go first.
        """
        with as_mxnet_errors():
            self._store.push(key, _arrays(value), priority)

    def pull(self, key: Any, out: Any = None, priority: int = 0, ignore_sparse: bool = True) -> None:
        """Reads values; reading an array of `out` waits for its value.

        Args:
            key (int | str | list): the keys.
            out (NDArray | list): receives the values.
            priority (int): accepted; a pull does not wait for earlier ones.
            ignore_sparse (bool): whether arrays of rows are left as they are.
        """
        assert out is not None, "out is missing"
        with as_mxnet_errors():
            self._wait_later(out, self._store.pull(key, _arrays(out), priority, ignore_sparse))

    def pushpull(self, key: Any, value: Any, out: Any = None, priority: int = 0) -> None:
        """Pushes values and pulls the results.

        Args:
            key (int | str | list): the keys.
            value (NDArray | list): the values.
            out (NDArray | list | None): receives the results; None: `value` does.
            priority (int): of the push, as for push().
        """
        out = value if out is None else out
        with as_mxnet_errors():
            self._wait_later(out, self._store.pushpull(key, _arrays(value), _arrays(out), priority))

    def broadcast(self, key: Any, value: Any, out: Any, priority: int = 0) -> None:
        """Gives keys the values of rank 0, and pulls them.

        Args:
            key (int | str | list): the keys.
            value (NDArray | list): the values.
            out (NDArray | list): receives the values.
            priority (int): accepted; a pull does not wait for earlier ones.
        """
        with as_mxnet_errors():
            self._wait_later(out, self._store.broadcast(key, _arrays(value), _arrays(out), priority))

    def row_sparse_pull(self, key: Any, out: Any = None, priority: int = 0, row_ids: Any = None) -> None:
        """Reads rows of tables.

        Args:
            key (int | str | list): the tables.
            out (RowSparseNDArray | list): receives the rows.
            priority (int): accepted; a pull does not wait for earlier ones.
            row_ids (NDArray | list): the ids of the rows.
        """
        assert out is not None and row_ids is not None, "out or row_ids is missing"
        with as_mxnet_errors():
            self._store.row_sparse_pull(key, _arrays(out), priority, _arrays(row_ids))

    @staticmethod
    def _wait_later(out: Any, ticket: keyed.Ticket) -> None:
        for one in _flat(out):
            if isinstance(one, NDArray) and not isinstance(one, RowSparseNDArray):
                one._ticket = ticket

    def set_optimizer(self, optimizer: Optimizer) -> None:
        """Makes pushed values gradients.

        Args:
            optimizer (mxnet.optimizer.Optimizer): changes the values of the keys.
        """
        with as_mxnet_errors():
            self._store.set_optimizer(optimizer)

    def set_gradient_compression(self, compression_params: Mapping[str, object]) -> None:
        """Compresses what is pushed.

        Args:
            compression_params (dict): 'type': '2bit', and 'threshold'.
        """
        with as_mxnet_errors():
            self._store.set_gradient_compression(compression_params)

    def save_optimizer_states(self, fname: str, dump_optimizer: bool = False) -> None:
        """Saves the optimizer's states.

        Args:
            fname (str): the file.
            dump_optimizer (bool): whether it has the optimizer too.
        """
        with as_mxnet_errors():
            self._store.save_optimizer_states(fname, dump_optimizer)

    def load_optimizer_states(self, fname: str) -> None:
        """Loads what save_optimizer_states saved.

        Args:
            fname (str): the file.
        """
        with as_mxnet_errors():
            self._store.load_optimizer_states(fname)

    @staticmethod
    def is_capable(capability: str) -> bool:
        """Tells what the store can do.

        Args:
            capability (str): 'optimizer'.

        Returns:
            bool: True.
        """
        return keyed.KVStore.is_capable(capability)

    def barrier(self) -> None:
        """Waits for all workers."""
        with as_mxnet_errors():
            self._store.barrier()

    _barrier = barrier

    def num_dead_node(self, node_id: int = 7, timeout: int = 60) -> int:
        """Returns how many other processes of the job are gone.

        Args:
            node_id (int): as of penstock.kv.KVStore.num_dead_node.
            timeout (int): accepted.

        Returns:
            int: their number.
        """
        return self._store.num_dead_node(node_id, timeout)

    def _set_updater(self, updater: Callable[[Any, NDArray, NDArray], object]) -> None:
        def update(key: Any, total: Any, stored: Any) -> None:
            updater(key.encode() if isinstance(key, str) else key, _as_ndarray(total), _as_ndarray(stored))

        with as_mxnet_errors():
            self._store._set_updater(update)

    def _send_command_to_servers(self, head: int, body: str) -> None:
        self._store._send_command_to_servers(head, body)


KVStoreBase = KVStore


def _as_ndarray(value: Any) -> NDArray:
    return RowSparseNDArray(value) if isinstance(value, keyed.RowSparse) else NDArray(value)


def create(name: str = "local") -> KVStore:
    """Makes a store.

    Args:
        name (str): its type, see penstock.kv.create.

    Returns:
        KVStore: without keys.

    Raises:
        TypeError: the name is not a text.

    Example:
        import penstock.compat.mxnet as mx
        assert mx.kv.create('device').type == 'device'
    """
    if not isinstance(name, str):
        raise TypeError("name must be a string")
    with as_mxnet_errors():
        return KVStore(keyed.create(name))
