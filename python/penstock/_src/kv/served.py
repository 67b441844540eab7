"""A store whose values are on pservers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy

from penstock._src.base.errors import program_error
from penstock._src.kv.sums import summed
from penstock._src.kv.tables import ServedTable
from penstock._src.kv.values import RowSparse

if TYPE_CHECKING:
    from collections.abc import Sequence

    from penstock import _penstock
    from penstock._src.kv.keys import Key
    from penstock._src.kv.member import Member
    from penstock._src.kv.nodes import Nodes
    from penstock._src.kv.optimizer import Optimizer
    from penstock._src.kv.programs import ProgramOptimizer
    from penstock._src.kv.tables import TableFacts
    from penstock._src.kv.tickets import Pending
    from penstock._src.kv.values import Array, Value


class ServedStore:
    """A worker of a job with pservers.

    Args:
        client: the connections to the pservers.
        in_fours: the order in which the values of several devices are added (sums.summed).
        member: the connection to the scheduler, if the job has one.
    """

    def __init__(self, client: _penstock.KvClient, in_fours: bool, member: Member | None = None) -> None:
        self._client = client
        self._in_fours = in_fours
        self._member = member
        self._handles: dict[Key, int] = {}
        self._shapes: dict[Key, tuple[int, ...]] = {}
        self._types: dict[Key, numpy.dtype[Any]] = {}
        self._ended = False

    @property
    def rank(self) -> int:
        return self._client.rank

    @property
    def num_workers(self) -> int:
        return self._client.workers

    def init(self, items: Sequence[tuple[Key, Value]]) -> None:
        for key, value in items:
            rows = isinstance(value, RowSparse)
            whole = None
            if self.rank == 0:
                whole = value.to_dense() if isinstance(value, RowSparse) else value
            self._handles[key] = self._client.declare(str(key), value.dtype.name, value.shape, rows, whole)
            self._shapes[key], self._types[key] = value.shape, value.dtype
        self._client.barrier()

    def push(self, key: Key, values: Sequence[Value], priority: int) -> Pending:
        total = summed(values, self._in_fours)
        if isinstance(total, RowSparse):
            return self._client.push_rows(self._handles[key], total.rows, total.values, priority)
        return self._client.push(self._handles[key], total, priority)

    def push_all(self, items: Sequence[tuple[Key, Sequence[Value]]], priority: int) -> Sequence[Pending]:
        if len(items) == 1:
            return [self.push(*items[0], priority)]
        pending: list[Pending] = []
        handles: list[int] = []
        arrays: list[Array] = []
        for key, values in items:
            total = values[0] if len(values) == 1 else summed(values, self._in_fours)
            if isinstance(total, RowSparse):
                pending.append(self.push(key, [total], priority))
            else:
                handles.append(self._handles[key])
                arrays.append(total)
        if handles:
            pending.append(self._client.push_all(handles, arrays, priority))
        return pending

    def pull(self, key: Key, out: Array, priority: int) -> Pending:
        return self._client.pull(self._handles[key], out, priority)

    def pull_all(self, items: Sequence[tuple[Key, Array]], priority: int) -> Sequence[Pending]:
        if len(items) == 1:
            return [self.pull(*items[0], priority)]
        handles = [self._handles[key] for key, _ in items]
        return [self._client.pull_all(handles, [out for _, out in items], priority)] if items else []

    def pull_rows(self, key: Key, ids: Array, priority: int) -> PulledRows:
        out = numpy.empty((ids.size, *self._shapes[key][1:]), self._types[key])
        pending = self._client.pull_rows(self._handles[key], ids, out, priority) if ids.size else None
        return PulledRows(pending, RowSparse(ids, out, self._shapes[key]))

    def add_table(self, facts: TableFacts) -> ServedTable:
        return ServedTable(self._client, facts)

    def set_optimizer(self, optimizer: Optimizer | ProgramOptimizer) -> None:
        self._client.set_optimizer(optimizer.native().text)

    def change_optimizer(self, optimizer: Optimizer | ProgramOptimizer) -> None:
        self._client.set_optimizer(optimizer.native().text, keep_state=True)

    def set_compression(self, kind: str, threshold: float) -> None:
        self._client.set_compression(threshold)

    def barrier(self) -> None:
        self._client.barrier()

    def rounds(self, key: Key) -> int:
        return self._client.rounds(self._handles[key])

    def dead(self, nodes: Nodes) -> int:
        if self._member is not None:
            return self._member.dead(nodes)
        if nodes.number is not None:
            raise program_error(
                "E-kv-node",
                "kv.num_dead_node: without a scheduler the processes of a role are counted together",
                "give a sum of 2 (pservers) and 4 (workers)",
            )
        workers = self._client.gone_workers() if nodes.workers else 0
        return workers + (self._client.lost_servers() if nodes.servers else 0)

    def close(self) -> None:
        if self._ended:
            return
        self._ended = True
        self._client.complete()
        self._client.close()
        if self._member is not None:
            self._member.complete()

    def end_with_process(self) -> None:
        """Completes when the process ends with status 0; with another status, the others are told of it."""
        if self._ended:
            return
        self._ended = True
        self._client.end_with_process()
        if self._member is not None:
            self._member.complete()

    def abandon(self, reason: str) -> None:
        """Tells the others that this worker has failed, and why."""
        if self._ended:
            return
        self._ended = True
        self._client.abandon(reason)
        self._client.close()


class PulledRows:
    """Rows on their way into a RowSparse."""

    def __init__(self, pending: Pending | None, rows: RowSparse) -> None:
        self._pending = pending
        self._rows = rows

    def wait(self) -> RowSparse:
        if self._pending is not None:
            self._pending.wait()
        return self._rows
