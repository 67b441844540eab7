"""Who holds the rows of a table: this process, or pservers."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

import numpy

from penstock import _penstock
from penstock._src.kv.tickets import DONE

if TYPE_CHECKING:
    from penstock._src.kv.tickets import Pending
    from penstock._src.kv.values import Array


class TableFacts(NamedTuple):
    """What all workers say of a table."""

    name: str
    dtype: str
    width: int
    spec: str  # the text that _penstock.kv_table_spec makes


class PendingRows(Protocol):
    """A lookup on its way."""

    def done(self) -> bool: ...

    def wait(self) -> Array:
        """Returns a row for each id."""


class TableRows(Protocol):
    """The rows of a table. Ids are int64 `[n]`, gradients `[n, width]` of the table's type; both are contiguous."""

    def lookup(self, ids: Array) -> PendingRows: ...

    def push(self, ids: Array, gradients: Array) -> Pending: ...

    def rounds(self) -> int:
        """Returns how many pushes of this worker the table has."""


class LocalTable:
    """All rows in this process."""

    def __init__(self, facts: TableFacts) -> None:
        self._native = _penstock.KvLocalTable(facts.name, facts.dtype, facts.width, facts.spec)

    def lookup(self, ids: Array) -> RowsThere:
        return RowsThere(self._native.lookup(ids))

    def push(self, ids: Array, gradients: Array) -> Pending:
        self._native.push(ids, gradients)
        return DONE

    def rounds(self) -> int:
        return self._native.updates


class ServedTable:
    """Rows on pservers; all workers declare the table."""

    def __init__(self, client: _penstock.KvClient, facts: TableFacts) -> None:
        self._client = client
        self._facts = facts
        self._handle = client.declare_table(facts.name, facts.dtype, facts.width, facts.spec)
        client.barrier()

    def lookup(self, ids: Array) -> PendingRows:
        out = numpy.empty((ids.size, self._facts.width), self._facts.dtype)
        if not ids.size:
            return RowsThere(out)
        return RowsComing(self._client.pull_rows(self._handle, ids, out), out)

    def push(self, ids: Array, gradients: Array) -> Pending:
        return self._client.push_rows(self._handle, ids, gradients)

    def rounds(self) -> int:
        return self._client.rounds(self._handle)


class RowsThere:
    """Rows that were there at once."""

    def __init__(self, rows: Array) -> None:
        self._rows = rows

    def done(self) -> bool:
        return True

    def wait(self) -> Array:
        return self._rows


class RowsComing:
    """Rows on their way into an array."""

    def __init__(self, pending: Pending, rows: Array) -> None:
        self._pending = pending
        self._rows = rows

    def done(self) -> bool:
        return self._pending.done()

    def wait(self) -> Array:
        self._pending.wait()
        return self._rows
