"""Table: rows by 64-bit id, which a store keeps and an optimizer updates."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, overload

import numpy

from penstock import _penstock
from penstock._src.base.errors import program_error
from penstock._src.base.row_policy import row_policy
from penstock._src.kv import optimizer as optimizers
from penstock._src.kv.newest import newest
from penstock._src.kv.tables import TableFacts
from penstock._src.kv.tickets import Ticket
from penstock._src.kv.values import array_of, to_out

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from penstock._src.kv.store import KVStore
    from penstock._src.kv.tables import PendingRows
    from penstock._src.kv.values import Array

_KINDS = {"uniform": 2, "normal": 2, "constant": 1}


class Table:
    """Rows by id, such as the embeddings of words or users. The ids may be any 64-bit integers.

    A row exists once it is pushed; until then its values follow from the seed, the name of the table and the id, and
    take no memory. In a store over pservers each server has the rows of some ids; values do not depend on their number.
    All workers make a table with the same arguments; the call waits for them.

    A push is a step of the table. Its optimizer changes the rows that the push lists, and no other: sgd and adam (with
    lazy_update, which is their default), adagrad, ftrl and test do so; other optimizers are refused. Rates and counts
    of updates are the table's own. In a synchronous store a step is complete when each worker has pushed, so all
    workers push equally often, with no ids if need be; a lookup gets the result of the worker's last push. In an
    asynchronous store each push is a step.

    Args:
        name (str): the name; no key of the store has it.
        width (int): the number of elements of a row.
        optimizer (str | penstock.kv.optimizer.Optimizer): what penstock.kv.optimizer.create() returns, or a name with
            its defaults. Later changes of its attributes have no effect.
        store (penstock.kv.KVStore | None): a store of type local, device or dist_*; None: the one made last.
        entry (str | None): which ids get a row: 'count N', in the N'th step that lists the id, or 'probability P'.
            Until then the gradients of the id are dropped. None: the first push makes the row.
        evict (str | list[str] | None): when rows are given up: 'unseen N', after N steps that did not list the id;
            'count N after M'; 'shows X decay Y every N'.
        budget_mb (int | None): the most memory of rows on each server, in MB; the longest unseen rows are given up.
        dtype (str): 'float32' or 'float64'.
        initial (float | tuple): ('uniform', low, high), ('normal', mean, deviation), or a number.
        seed (int): of random initial values, from 0.

    Raises:
        TypeError, ValueError: an argument is of another type, or out of range.
        penstock.ProgramError: E-kv-table-start: wrong initial values; E-kv-table-store: a store of another type;
            E-row-policy-value, E-text-syntax: a wrong rule; E-kv-differs: another worker has made it otherwise;
            E-kv-key-again: the name is in use.
        NotImplementedError: E-kv-table-optimizer: the optimizer changes rows that a push does not list.
        penstock.StateError: E-kv-no-store: there is no store.

    Example:
        kv = penstock.kv.create('local')
        sgd = penstock.kv.optimizer.create('sgd', learning_rate=0.5)
        table = penstock.kv.Table('words', 4, sgd, initial=1.0)
        table.push([7, 2**40], np.ones((2, 4), 'float32'))
        assert (table.lookup([2**40, 5])[:, 0] == [0.5, 1.0]).all()
    """

    def __init__(
        self,
        name: str,
        width: int,
        optimizer: str | optimizers.Optimizer = "sgd",
        *,
        store: KVStore | None = None,
        entry: str | None = None,
        evict: str | Sequence[str] | None = None,
        budget_mb: int | None = None,
        dtype: str = "float32",
        initial: float | tuple[Any, ...] = ("uniform", -0.05, 0.05),
        seed: int = 0,
    ) -> None:
        if not isinstance(name, str) or not name:
            raise TypeError(f"kv.Table: name must be a text, not {name!r}")
        _require_int("width", width, 1)
        _require_int("seed", seed, 0)
        if isinstance(optimizer, str):
            optimizer = optimizers.create(optimizer)
        if not isinstance(optimizer, optimizers.Optimizer):
            raise TypeError(
                "kv.Table: optimizer is a name, or what penstock.kv.optimizer.create() returns, not "
                f"{type(optimizer).__name__}"
            )
        policy = row_policy("kv.Table", True, entry, evict, budget_mb) or ""
        self._dtype = numpy.dtype(dtype)
        spec = _penstock.kv_table_spec(name, self._dtype.name, width, _start(initial), seed, policy, optimizer.native())
        self._name, self._width = name, width
        self._store = store if store is not None else newest("kv.Table")
        self._rows = self._store._add_table(TableFacts(name, self._dtype.name, width, spec))

    @property
    def name(self) -> str:
        """The name of the table."""
        return self._name

    @property
    def width(self) -> int:
        """The number of elements of a row."""
        return self._width

    @property
    def dtype(self) -> numpy.dtype[Any]:
        """The type of the elements."""
        return self._dtype

    @property
    def store(self) -> KVStore:
        """The store that keeps the rows."""
        return self._store

    @overload
    def lookup(self, ids: object, out: None = None) -> Array: ...
    @overload
    def lookup(self, ids: object, out: Any) -> Ticket: ...
    def lookup(self, ids: object, out: object = None) -> Array | Ticket:
        """Reads rows. It makes none.

        Args:
            ids (array | list): integers of any shape; repeats are allowed.
            out (array | None): an array of shape `[*ids.shape, width]` that receives the rows. None: the call waits,
                and returns a new array.

        Returns:
            numpy.ndarray | Ticket: the rows, `[*ids.shape, width]`; with `out`, a ticket to wait for them.

        Raises:
            TypeError: `ids` are no integers.
            penstock.ProgramError: E-kv-value: `out` has another shape.
            penstock.PeerError: another process of the job is gone.
        """
        wanted = ids_of(ids, "kv.Table.lookup")
        shape = (*wanted.shape, self._width)
        array = to_out(out, "kv.Table.lookup") if out is not None else None
        if array is not None and array.shape != shape:
            raise program_error(
                "E-kv-value", f"kv.Table.lookup: out has shape {list(array.shape)}; the rows have {list(shape)}"
            )
        unique, place = numpy.unique(wanted.reshape(-1), return_inverse=True)
        pending = self._ask(unique)
        if array is None:
            rows: Array = pending.wait()[place.reshape(-1)]
            return rows.reshape(shape)
        take = functools.partial(_put, array, pending, place.reshape(-1))
        return self._store._keep(Ticket([pending], [take]))

    def push(self, ids: object, gradients: object) -> Ticket:
        """Makes a step of the table: the optimizer changes the rows of these ids.

        Args:
            ids (array | list): integers of any shape; the gradients of repeats are added. There may be none.
            gradients (array): `[*ids.shape, width]`, of a type that converts to the table's without a loss of kind.

        Returns:
            Ticket: to wait until the pservers have the gradients.

        Raises:
            TypeError: `ids` are no integers.
            penstock.ProgramError: E-kv-value: `gradients` have another shape or type.
            penstock.PeerError: another process of the job is gone.
        """
        listed = ids_of(ids, "kv.Table.push")
        given = array_of(gradients, "kv.Table.push")
        shape = (*listed.shape, self._width)
        if given.shape != shape or not numpy.can_cast(given.dtype, self._dtype, "same_kind"):
            raise program_error(
                "E-kv-value",
                f"kv.Table.push: gradients are {given.dtype}{list(given.shape)}; those of {listed.size} rows of "
                f"{self._name} are {self._dtype}{list(shape)}",
            )
        values = given.astype(self._dtype, order="C", copy=False).reshape(listed.size, self._width)
        self._store._settle()
        pending = self._rows.push(numpy.ascontiguousarray(listed.reshape(-1)), values)
        return self._store._keep(Ticket([pending]))

    def rounds(self) -> int:
        """Returns how many pushes of this worker the table has; those before a restart count too.

        Returns:
            int: the number of pushes.
        """
        return self._rows.rounds()

    def _ask(self, ids: Array) -> PendingRows:
        """Begins a lookup of int64 `[n]`."""
        self._store._settle()
        return self._rows.lookup(ids)

    def __repr__(self) -> str:
        return f"<Table {self._name}, rows of {self._width} {self._dtype}>"


def ids_of(ids: object, call: str) -> Array:
    """Returns ids as int64, in their shape.

    Raises:
        TypeError: they are no integers.
    """
    array = array_of(ids, call)
    if array.dtype.kind not in "iu" and array.size:
        raise TypeError(f"{call}: ids are integers, not elements of type {array.dtype}")
    return array.astype("int64", copy=False)


def _put(out: Array, pending: PendingRows, place: Array) -> None:
    numpy.copyto(out, pending.wait()[place].reshape(out.shape), casting="unsafe")


def _require_int(name: str, value: object, least: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise TypeError(f"kv.Table: {name} is {value!r}; it must be an integer from {least}")


def _start(initial: object) -> tuple[str, float, float]:
    """Returns the kind of initial values and its two numbers."""
    if isinstance(initial, (int, float)) and not isinstance(initial, bool):
        return "constant", float(initial), 0.0
    if isinstance(initial, (tuple, list)) and initial and initial[0] in _KINDS:
        numbers = [float(one) for one in initial[1:]]
        if len(numbers) == _KINDS[initial[0]]:
            return initial[0], numbers[0], (numbers + [0.0])[1]
    raise TypeError(
        f"kv.Table: initial is ('uniform', low, high), ('normal', mean, deviation) or a number, not {initial!r}"
    )
