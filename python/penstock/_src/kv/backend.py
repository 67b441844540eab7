"""What a store asks of the one who holds the values: this process (local), every rank (ranks), or pservers (served)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy

    from penstock._src.kv.keys import Key
    from penstock._src.kv.nodes import Nodes
    from penstock._src.kv.optimizer import Optimizer
    from penstock._src.kv.programs import ProgramOptimizer
    from penstock._src.kv.tables import TableFacts, TableRows
    from penstock._src.kv.tickets import Pending
    from penstock._src.kv.values import Array, RowSparse, Value


class Facts(NamedTuple):
    """What a store knows of a key."""

    shape: tuple[int, ...]
    dtype: numpy.dtype[Any]
    is_rows: bool  # a table of which rows are pushed and pulled


class PendingRows(Protocol):
    """A pull of rows on its way."""

    def wait(self) -> RowSparse: ...


class Backend(Protocol):
    """Who holds the values. All arrays are C-contiguous and of their key's type; the store has checked the shapes."""

    @property
    def rank(self) -> int: ...

    @property
    def num_workers(self) -> int: ...

    def init(self, items: Sequence[tuple[Key, Value]]) -> None:
        """Gives keys their initial values, those of rank 0; returns when all workers have done so."""

    def push(self, key: Key, values: Sequence[Value], priority: int) -> Pending:
        """Adds the values of all devices and workers, and applies the sum."""

    def push_all(self, items: Sequence[tuple[Key, Sequence[Value]]], priority: int) -> Sequence[Pending]:
        """Pushes several keys, each once."""

    def pull(self, key: Key, out: Array, priority: int) -> Pending:
        """Fills `out`."""

    def pull_all(self, items: Sequence[tuple[Key, Array]], priority: int) -> Sequence[Pending]:
        """Fills several arrays."""

    def pull_rows(self, key: Key, ids: Array, priority: int) -> PendingRows:
        """Returns the rows of ascending, different ids."""

    def add_table(self, facts: TableFacts) -> TableRows:
        """Makes a table of any ids; returns when all workers have done so."""

    def set_optimizer(self, optimizer: Optimizer | ProgramOptimizer) -> None:
        """Pushes are gradients from now on; the state of all keys starts anew."""

    def change_optimizer(self, optimizer: Optimizer | ProgramOptimizer) -> None:
        """The optimizer has other rates or multipliers; the state stays."""

    def set_compression(self, kind: str, threshold: float) -> None:
        """Pushes are compressed from now on."""

    def barrier(self) -> None: ...

    def rounds(self, key: Key) -> int: ...

    def dead(self, nodes: Nodes) -> int:
        """Returns how many of these processes of the job are gone."""

    def close(self) -> None: ...


class OwnValues(Backend, Protocol):
    """A backend whose values and states are in this process."""

    def total(self, key: Key, value: Value) -> Value:
        """Returns the sum of what all workers push."""

    def assign(self, key: Key, value: Value) -> None:
        """Replaces the value of a key in this worker."""

    def save_states(self, path: str, dump_optimizer: bool) -> None: ...

    def load_states(self, path: str) -> None: ...
