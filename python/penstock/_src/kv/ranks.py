"""A store without pservers: each rank has all values; ranks add pushes by all-reduce, and each applies the sum."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy

from penstock._src.base.errors import program_error
from penstock._src.hvd import allgather, allreduce, broadcast, membership, operations
from penstock._src.hvd import job as ranks_of_job
from penstock._src.kv.sums import summed
from penstock._src.kv.tickets import DONE
from penstock._src.kv.values import RowSparse

if TYPE_CHECKING:
    from collections.abc import Sequence

    from penstock._src.kv.keys import Key
    from penstock._src.kv.local import LocalStore, RowsNow
    from penstock._src.kv.nodes import Nodes
    from penstock._src.kv.optimizer import Optimizer
    from penstock._src.kv.programs import ProgramOptimizer
    from penstock._src.kv.tables import TableFacts, TableRows
    from penstock._src.kv.tickets import Pending
    from penstock._src.kv.values import Array, Value


class RanksStore:
    """This rank's part; it joins the ranks of the job.

    Args:
        local: holds this rank's copy of the values.
    """

    def __init__(self, local: LocalStore) -> None:
        membership.init()
        self._local = local

    @property
    def rank(self) -> int:
        return ranks_of_job.rank()

    @property
    def num_workers(self) -> int:
        return ranks_of_job.size()

    def init(self, items: Sequence[tuple[Key, Value]]) -> None:
        self._local.init([(key, self._of_rank_0(key, value)) for key, value in items])

    def _of_rank_0(self, key: Key, value: Value) -> Value:
        name = f"kv.init.{key}"
        if not isinstance(value, RowSparse):
            return broadcast.broadcast(value, 0, name)
        table = broadcast.broadcast(value.to_dense(), 0, name)
        return RowSparse(numpy.arange(value.shape[0]), table, value.shape)

    def push(self, key: Key, values: Sequence[Value], priority: int) -> Pending:
        self._local.push(key, [self.total(key, summed(values, in_fours=False))], priority)
        return DONE

    def total(self, key: Key, value: Value) -> Value:
        """Returns the sum of what all ranks push."""
        name = f"kv.push.{key}"
        if isinstance(value, RowSparse):
            rows = allgather.allgather(value.rows, name + ".rows")
            return RowSparse(rows, allgather.allgather(value.values, name), value.shape).merged()
        return allreduce.allreduce(value, name=name, op=operations.Sum)

    def assign(self, key: Key, value: Value) -> None:
        self._local.assign(key, value)

    def push_all(self, items: Sequence[tuple[Key, Sequence[Value]]], priority: int) -> Sequence[Pending]:
        return [self.push(key, values, priority) for key, values in items]

    def pull(self, key: Key, out: Array, priority: int) -> Pending:
        return self._local.pull(key, out, priority)

    def pull_all(self, items: Sequence[tuple[Key, Array]], priority: int) -> Sequence[Pending]:
        return [self.pull(key, out, priority) for key, out in items]

    def pull_rows(self, key: Key, ids: Array, priority: int) -> RowsNow:
        return self._local.pull_rows(key, ids, priority)

    def add_table(self, facts: TableFacts) -> TableRows:
        raise program_error(
            "E-kv-table-store",
            f"kv.Table: {facts.name} would lie in each rank, since the store has no pservers",
            "use a store of type dist_sync, dist_async or local",
        )

    def set_optimizer(self, optimizer: Optimizer | ProgramOptimizer) -> None:
        self._local.set_optimizer(optimizer)

    def change_optimizer(self, optimizer: Optimizer | ProgramOptimizer) -> None:
        self._local.change_optimizer(optimizer)

    def set_compression(self, kind: str, threshold: float) -> None:
        raise program_error(
            "E-kv-compression", "kv.set_gradient_compression: a store without pservers compresses nothing"
        )

    def save_states(self, path: str, dump_optimizer: bool) -> None:
        self._local.save_states(path, dump_optimizer)

    def load_states(self, path: str) -> None:
        self._local.load_states(path)

    def barrier(self) -> None:
        broadcast.barrier()

    def rounds(self, key: Key) -> int:
        return self._local.rounds(key)

    def dead(self, nodes: Nodes) -> int:
        return 0

    def close(self) -> None:
        """The process leaves the ranks when it ends, as other programs of ranks do."""
