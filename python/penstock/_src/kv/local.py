"""A store whose values are in this process."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from penstock import _penstock
from penstock._src.kv.tables import LocalTable
from penstock._src.kv.tickets import DONE
from penstock._src.kv.values import RowSparse

if TYPE_CHECKING:
    from collections.abc import Sequence

    from penstock._src.kv.keys import Key
    from penstock._src.kv.nodes import Nodes
    from penstock._src.kv.optimizer import Optimizer
    from penstock._src.kv.programs import ProgramOptimizer
    from penstock._src.kv.tables import TableFacts
    from penstock._src.kv.tickets import Pending
    from penstock._src.kv.values import Array, Value


class LocalStore:
    """The values of one process, to which its devices push.

    Args:
        on_device: whether the values of several devices are added from left to right, and compressed one by one.
    """

    rank = 0
    num_workers = 1

    def __init__(self, on_device: bool) -> None:
        self._native = _penstock.KvLocal(device=on_device)
        self._shapes: dict[Key, tuple[int, ...]] = {}
        self._pushes: dict[Key, int] = {}

    def init(self, items: Sequence[tuple[Key, Value]]) -> None:
        for key, value in items:
            if isinstance(value, RowSparse):
                self._native.init_rows(str(key), value.shape, value.rows, value.values)
            else:
                self._native.init(str(key), value)
            self._shapes[key], self._pushes[key] = value.shape, 0

    def push(self, key: Key, values: Sequence[Value], priority: int) -> Pending:
        if isinstance(values[0], RowSparse):
            self._native.push_rows(str(key), [(one.rows, one.values) for one in cast("Sequence[RowSparse]", values)])
        else:
            self._native.push(str(key), list(cast("Sequence[Array]", values)))
        self._pushes[key] += 1
        return DONE

    def total(self, key: Key, value: Value) -> Value:
        """Returns the sum of what all workers push, of which there is one."""
        return value

    def assign(self, key: Key, value: Value) -> None:
        """Replaces the value of a key."""
        self._native.assign(str(key), value.to_dense() if isinstance(value, RowSparse) else value)
        self._pushes[key] += 1

    def push_all(self, items: Sequence[tuple[Key, Sequence[Value]]], priority: int) -> Sequence[Pending]:
        return [self.push(key, values, priority) for key, values in items]

    def pull(self, key: Key, out: Array, priority: int) -> Pending:
        self._native.pull(str(key), out)
        return DONE

    def pull_all(self, items: Sequence[tuple[Key, Array]], priority: int) -> Sequence[Pending]:
        return [self.pull(key, out, priority) for key, out in items]

    def pull_rows(self, key: Key, ids: Array, priority: int) -> RowsNow:
        rows, values = self._native.pull_rows(str(key), ids)
        return RowsNow(RowSparse(rows, values, self._shapes[key]))

    def add_table(self, facts: TableFacts) -> LocalTable:
        return LocalTable(facts)

    def set_optimizer(self, optimizer: Optimizer | ProgramOptimizer) -> None:
        self._native.set_optimizer(optimizer.native())

    def change_optimizer(self, optimizer: Optimizer | ProgramOptimizer) -> None:
        self._native.change_optimizer(optimizer.native())

    def set_compression(self, kind: str, threshold: float) -> None:
        self._native.set_compression(threshold)

    def save_states(self, path: str, dump_optimizer: bool) -> None:
        self._native.save_states(path, dump_optimizer)

    def load_states(self, path: str) -> None:
        self._native.load_states(path)

    def barrier(self) -> None:
        pass

    def rounds(self, key: Key) -> int:
        return self._pushes[key]

    def dead(self, nodes: Nodes) -> int:
        return 0

    def close(self) -> None:
        pass


class RowsNow:
    """Rows that are there at once."""

    def __init__(self, rows: RowSparse) -> None:
        self._rows = rows

    def wait(self) -> RowSparse:
        return self._rows
