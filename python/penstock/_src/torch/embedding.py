"""Embedding: a module of PyTorch whose rows live in a table of a store."""

from __future__ import annotations

import types
from typing import TYPE_CHECKING, NamedTuple

import numpy

from penstock._src.kv.table import Table, ids_of
from penstock._src.torch.library import torch

if TYPE_CHECKING:
    from typing import Any

    from penstock._src.kv.tables import PendingRows
    from penstock._src.kv.tickets import Ticket
    from penstock._src.kv.values import Array

    Base = object
else:
    Base = torch.nn.Module if isinstance(torch, types.ModuleType) else object


class _Asked(NamedTuple):
    """A lookup of a batch that has begun."""

    ids: Array  # of the batch, in one dimension
    unique: Array
    place: Array  # of each of them among `unique`
    rows: PendingRows
    step: int  # pushes before it


class Embedding(Base):
    """Looks up rows of a table, as torch.nn.Embedding does in memory of its own.

    The forward pass asks the store for the rows of the batch, each once. The backward pass collects their gradients,
    and `step` pushes them: a DistributedOptimizer of a model that has this module calls it. As there, the gradients
    are divided by the number of workers. The table's own optimizer updates the rows; the module has no parameters,
    and state_dict() no rows.

    Args:
        table (penstock.kv.Table): of float32, or of float64 for models of that type.

    Raises:
        TypeError: `table` is no Table.

    Example:
        import torch
        kv = penstock.kv.create('local')
        table = penstock.kv.Table('words', 8, penstock.kv.optimizer.create('adagrad', learning_rate=0.1))
        embedding = penstock.torch.Embedding(table)
        embedding(torch.tensor([[3, 2**40], [3, 5]])).sum().backward()
        embedding.step()
    """

    def __init__(self, table: Table) -> None:
        torch.nn.Module.__init__(self)  # where PyTorch is missing, this says so
        if not isinstance(table, Table):
            raise TypeError(f"penstock.torch: Embedding takes a penstock.kv.Table, not {type(table).__name__}")
        self.table = table
        self._asked: list[_Asked] = []
        self._next: list[Array] = []  # ids to ask for behind the next push
        self._gradients: list[tuple[Array, torch.Tensor]] = []
        self._steps = 0

    @property
    def embedding_dim(self) -> int:
        """The number of elements of a row."""
        return self.table.width

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        """Looks up rows.

        Args:
            ids (torch.Tensor): integers of any shape.

        Returns:
            torch.Tensor: the rows, `[*ids.shape, embedding_dim]`, on the device of `ids`.

        Raises:
            TypeError: `ids` are no integers.
            penstock.PeerError: another process of the job is gone.
        """
        asked = self._take(_flat(ids))
        rows = torch.from_numpy(asked.rows.wait())
        if torch.is_grad_enabled():
            rows.requires_grad_(True)
            rows.register_post_accumulate_grad_hook(self._collector(asked.unique))
        place = torch.from_numpy(asked.place).to(ids.device).reshape(ids.shape)
        return torch.nn.functional.embedding(place, rows.to(ids.device))

    def prefetch(self, ids: torch.Tensor, after_step: bool = False) -> None:
        """Begins to look up rows that a later forward pass will need.

        Args:
            ids (torch.Tensor): those of that forward pass, in the same order.
            after_step (bool): ask behind the next `step`, and not now. In a synchronous store rows that were asked for
                before a step are not used after it, since they lack its result.
        """
        flat = _flat(ids)
        if after_step and not self._is_async():
            self._next.append(flat)
        else:
            self._asked.append(self._ask(flat))

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Forgets the gradients that were collected since the last step.

        Args:
            set_to_none (bool): without meaning here.
        """
        self._gradients.clear()

    def step(self) -> Ticket:
        """Pushes the gradients that were collected since the last step; there may be none.

        Returns:
            penstock.kv.Ticket: to wait until the store has them.

        Raises:
            penstock.PeerError: another process of the job is gone.
        """
        gradients, self._gradients = self._gradients, []
        if gradients:
            ids = numpy.concatenate([one for one, _ in gradients])
            values = torch.cat([rows for _, rows in gradients]) if len(gradients) > 1 else gradients[0][1]
        else:
            ids, values = numpy.empty(0, "int64"), torch.zeros(0, self.table.width)
        ticket = self.table.push(ids, values / self.table.store.num_workers)
        self._steps += 1
        if not self._is_async():
            self._asked.clear()
        self._asked += [self._ask(flat) for flat in self._next]
        self._next.clear()
        return ticket

    def extra_repr(self) -> str:
        """Returns what print() says of the module beside its name.

        Returns:
            str: the table.
        """
        return repr(self.table)

    def _is_async(self) -> bool:
        return "async" in self.table.store.type

    def _ask(self, flat: Array) -> _Asked:
        unique, place = numpy.unique(flat, return_inverse=True)
        return _Asked(flat, unique, place.reshape(-1), self.table._ask(unique), self._steps)

    def _take(self, flat: Array) -> _Asked:
        """Returns the lookup of these ids that has begun, or begins one. Those before it are of batches that were left
        out."""
        for at, asked in enumerate(self._asked):
            if numpy.array_equal(asked.ids, flat):
                del self._asked[: at + 1]
                return asked
        return self._ask(flat)

    def _collector(self, unique: Array) -> Any:  # a hook
        def collect(rows: torch.Tensor) -> None:
            if rows.grad is not None:
                self._gradients.append((unique, rows.grad))
                rows.grad = None

        return collect


def _flat(ids: torch.Tensor) -> Array:
    if not isinstance(ids, torch.Tensor):
        raise TypeError(f"penstock.torch: Embedding looks up a tensor of ids, not {type(ids).__name__}")
    return numpy.ascontiguousarray(ids_of(ids.detach().cpu(), "penstock.torch: Embedding").reshape(-1))
