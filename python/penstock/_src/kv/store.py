"""KVStore: values by key, to which the processes of a job add, and which they read."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, cast, overload

import numpy

from penstock._src.base import log
from penstock._src.base.errors import program_error
from penstock._src.kv.backend import Facts
from penstock._src.kv.keys import by_key, check_new, is_list, pairs, to_key
from penstock._src.kv.settings import StoreSettings
from penstock._src.kv.sums import summed
from penstock._src.kv.tickets import DONE, Ticket
from penstock._src.kv.values import RowSparse, to_out, to_value

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from typing_extensions import TypeGuard

    from penstock._src.kv.keys import Key, Keys
    from penstock._src.kv.values import Array, Value


class KVStore(StoreSettings):
    """Values by key. create() returns one.

    A key is an int or a str; all keys of a store are of one type. A value is an array: NumPy's, a tensor of PyTorch in
    main memory, or another object whose memory NumPy can read; or, for a table of which rows are exchanged, a
    RowSparse. Where a call takes a value, a list of values is one per device. Where it takes a key, a list of keys goes
    with a list of as many values.

    The calls of one worker on a key take effect in the order of the calls. Pushed arrays are never changed, and may be
    changed as soon as the call has returned. Errors of a push or pull that is still in progress are raised by its
    ticket, by wait(), or by the next call. Threads that share a store must take turns.

    Example:
        kv = penstock.kv.create('local')
        kv.init('w', np.zeros((2, 3), 'float32'))
        kv.push('w', [np.ones((2, 3), 'float32'), np.ones((2, 3), 'float32')])      # of two devices
        assert (kv.pull('w') == 2).all()
    """

    def init(self, key: Keys, value: object) -> None:
        """Gives keys their initial values, and waits until all workers have done so.

        Args:
            key (int | str | list): the keys; each is initialized once.
            value (array | RowSparse | list): their values; those of rank 0 count. They are copied. A RowSparse makes
                the key a table of rows; rows that it lacks are zero.

        Raises:
            penstock.ProgramError: E-kv-key-again, E-kv-key-kinds; E-kv-value: the elements are no numbers.
        """
        self._settle()
        items = [(one, self._initial(one, values)) for one, values in pairs(key, value, "init")]
        check_new([one for one, _ in items], self._facts)
        if taken := self._table_names.intersection(str(one) for one, _ in items):
            raise program_error("E-kv-key-again", f"kv.init: the store has a table {taken.pop()!r} already")
        self._backend.init(items)
        for one, first in items:
            self._facts[one] = Facts(first.shape, first.dtype, isinstance(first, RowSparse))

    def push(self, key: Keys, value: object, priority: int = 0) -> Ticket:
        """Adds values to keys: the sum over devices and workers is applied by the optimizer, or replaces the value.

        In a synchronous store of several workers the sum is complete when each worker has pushed the key; a second push
        of a worker belongs to the next round. In an asynchronous one, each push is applied by itself.

        Args:
            key (int | str | list): the keys. A key named several times counts once, with the sum.
            value (array | RowSparse | list): a value of the key's shape, or a list with one per device. Elements of
                another type are converted if no kind of number is lost.
            priority (int): of pushes that wait because much is on its way to a pserver, those of higher priority are
                sent first, then earlier ones. Values of one key stay in their order.

        Returns:
            Ticket: to wait until the push is applied.

        Raises:
            penstock.ProgramError: E-kv-key: a key has no value yet; E-kv-value: another shape or type; E-kv-rows: rows
                for a key that is not a table, or the reverse.
        """
        self._settle()
        found = by_key(pairs(key, value, "push"))
        ready = [(one, [self._fitting(one, given, "push") for given in values]) for one, values in found]
        self._refresh_optimizer()
        if self._updater is None:
            return self._keep(Ticket(self._backend.push_all(ready, priority)))
        for one, values in ready:
            self._update_by_hand(one, values)
        return self._keep(Ticket([DONE]))

    @overload
    def pull(self, key: Keys, out: None = None, priority: int = 0, ignore_sparse: bool = True) -> Any: ...
    @overload
    def pull(self, key: Keys, out: Any, priority: int = 0, ignore_sparse: bool = True) -> Ticket: ...
    def pull(
        self, key: Keys, out: object = None, priority: int = 0, ignore_sparse: bool = True
    ) -> Ticket | Array | list[Array]:
        """Reads values. A worker that has pushed a key reads the result of its last push.

        Args:
            key (int | str | list): the keys.
            out (array | list): arrays of the keys' shapes that receive the values; a list has one per device. They may
                have another type of elements. None: the call waits, and returns new arrays.
            priority (int): no effect: a pull does not wait for earlier ones.
            ignore_sparse (bool): a RowSparse as `out` is left as it is; False: it receives the whole table, which only
                a store of one process can give.

        Returns:
            Ticket | numpy.ndarray | list: with `out`, a ticket; else the value, or a list of values for a list of keys.

        Raises:
            penstock.ProgramError: E-kv-key; E-kv-value: `out` has another shape; E-kv-rows: the key is a table, whose
                rows row_sparse_pull reads.
        """
        self._settle()
        if out is None:
            keys = [to_key(one, "pull") for one in key] if isinstance(key, (list, tuple)) else [to_key(key, "pull")]
            new = [self._new_out(one) for one in keys]
            self._pull_all(keys, new, priority, ignore_sparse).wait()
            return new if is_list(key) else new[0]
        return self._keep(self._pull_all(key, out, priority, ignore_sparse))

    def pushpull(self, key: Keys, value: object, out: object = None, priority: int = 0) -> Ticket:
        """Pushes values and pulls the results.

        Args:
            key (int | str | list): the keys.
            value (array | list): as for push.
            out (array | list | None): as for pull; None: the results overwrite `value`.
            priority (int): of the push, as for push.

        Returns:
            Ticket: to wait until the results are there.

        Raises:
            penstock.ProgramError: as push and pull.
        """
        self.push(key, value, priority)
        return self._keep(self._pull_all(key, value if out is None else out, priority, True))

    def broadcast(self, key: Keys, value: object, out: object, priority: int = 0) -> Ticket:
        """Gives keys the values of rank 0, and pulls them: init and pull.

        Args:
            key (int | str | list): keys that have no value yet.
            value (array | list): as for init.
            out (array | list): as for pull.
            priority (int): no effect: a pull does not wait for earlier ones.

        Returns:
            Ticket: to wait until `out` is complete.

        Raises:
            penstock.ProgramError: as init and pull.
        """
        self.init(key, value)
        return self._keep(self._pull_all(key, out, priority, True))

    def row_sparse_pull(
        self, key: Keys, out: object = None, priority: int = 0, row_ids: object = None
    ) -> RowSparse | list[RowSparse]:
        """Reads rows of tables, and waits for them.

        Args:
            key (int | str | list): tables; keys that were initialized with a RowSparse.
            out (RowSparse | list | None): receives the rows as well; a list has one per device.
            priority (int): no effect: a pull does not wait for earlier ones.
            row_ids (array | list): the ids of the rows to read, in any order and shape, repeats allowed; a list has one
                array per key or device.

        Returns:
            RowSparse | list[RowSparse]: the rows with ascending ids, each once; a list for a list of keys, or for
            several arrays of ids.

        Raises:
            penstock.ProgramError: E-kv-key; E-kv-rows: the key is not a table.
            TypeError: `row_ids` is missing.
            ValueError: an id is outside the table.
        """
        self._settle()
        if row_ids is None:
            raise TypeError("kv.row_sparse_pull: row_ids is missing; it names the rows to read")
        wanted = _rows_wanted(key, row_ids, out)
        pulled = [(into, self._backend.pull_rows(one, self._ids(one, ids), priority)) for one, ids, into in wanted]
        results = []
        for into, pending in pulled:
            result = pending.wait()
            if into is not None:
                into.rows, into.values, into.shape = result.rows, result.values.astype(into.dtype), result.shape
            results.append(result)
        return results[0] if len(results) == 1 and not is_list(key) and not is_list(out) else results

    def _initial(self, key: Key, values: Sequence[object]) -> Value:
        if len(values) > 1:
            raise ValueError(f"kv.init: key {key!r} takes one value, not {len(values)}")
        value = to_value(values[0], "kv.init")
        if value.dtype.kind not in "iuf":
            raise program_error("E-kv-value", f"kv.init: key {key!r} cannot hold elements of type {value.dtype}")
        return value.merged() if isinstance(value, RowSparse) else numpy.ascontiguousarray(value).reshape(value.shape)

    def _known(self, key: Key, call: str) -> Facts:
        facts = self._facts.get(key)
        if facts is None:
            raise program_error(
                "E-kv-key", f"kv.{call}: key {key!r} has no value yet", "every worker calls init(key, value) first"
            )
        return facts

    def _fitting(self, key: Key, given: object, call: str) -> Value:
        """Returns a pushed value as the key's type; it has the key's shape."""
        facts = self._known(key, call)
        if _is_array_of(given, facts):
            return given
        value = to_value(given, f"kv.{call}")
        if isinstance(value, RowSparse) is not facts.is_rows:
            have, want = ("rows", "an array") if isinstance(value, RowSparse) else ("an array", "rows (RowSparse)")
            raise program_error("E-kv-rows", f"kv.{call}: key {key!r} was initialized with {want}; {have} were given")
        self._check_shape(key, value.shape, call)
        if value.dtype != facts.dtype and not numpy.can_cast(value.dtype, facts.dtype, "same_kind"):
            raise program_error(
                "E-kv-value", f"kv.{call}: key {key!r} holds {facts.dtype}; elements of type {value.dtype} do not fit"
            )
        if isinstance(value, RowSparse):
            typed = value.values.astype(facts.dtype, order="C", copy=False)
            return RowSparse(value.rows, typed, value.shape)
        return value.astype(facts.dtype, order="C", copy=False)

    def _check_shape(self, key: Key, shape: tuple[int, ...], call: str) -> None:
        facts = self._known(key, call)
        if tuple(shape) != facts.shape:
            raise program_error(
                "E-kv-value", f"kv.{call}: key {key!r} has shape {list(facts.shape)}, not {list(shape)}"
            )

    def _update_by_hand(self, key: Key, values: Sequence[Value]) -> None:
        """Lets the updater of the script apply a sum."""
        total = self._own_values().total(key, summed(values, in_fours=not self._kind.on_device))
        facts = self._known(key, "push")
        if facts.is_rows:
            stored: Value = self._backend.pull_rows(key, numpy.arange(facts.shape[0]), 0).wait()
        else:
            stored = self._new_out(key)
            self._backend.pull(key, stored, 0).wait()
        if self._updater is not None:
            self._updater(key, total, stored)
        self._own_values().assign(key, stored)

    def _new_out(self, key: Key) -> Array:
        facts = self._known(key, "pull")
        return numpy.empty(facts.shape, facts.dtype)

    def _pull_all(self, key: Keys, out: object, priority: int, ignore_sparse: bool) -> Ticket:
        items: list[tuple[Key, Array]] = []
        after: list[Callable[[], None]] = []
        for one, outs in pairs(key, out, "pull", "out"):
            facts = self._known(one, "pull")
            if len(outs) == 1 and _is_array_of(outs[0], facts) and outs[0].flags.writeable:
                items.append((one, outs[0]))
            else:
                self._prepare_pull(one, outs, ignore_sparse, items, after)
        return Ticket(self._backend.pull_all(items, priority), after)

    def _prepare_pull(
        self,
        key: Key,
        outs: Sequence[object],
        ignore_sparse: bool,
        items: list[tuple[Key, Array]],
        after: list[Callable[[], None]],
    ) -> None:
        facts = self._known(key, "pull")
        tables = [out for out in outs if isinstance(out, RowSparse)]
        if tables:
            self._pull_whole_tables(key, tables, ignore_sparse)
            return
        if facts.is_rows:
            raise program_error("E-kv-rows", f"kv.pull: key {key!r} is a table; row_sparse_pull reads its rows")
        arrays = [to_out(out, "kv.pull") for out in outs]
        for array in arrays:
            self._check_shape(key, array.shape, "pull")
        first = arrays[0]
        if first.dtype != facts.dtype or not first.flags.c_contiguous:
            arrays.insert(0, numpy.empty(facts.shape, facts.dtype))
        items.append((key, arrays[0]))
        after += [functools.partial(numpy.copyto, array, arrays[0], casting="unsafe") for array in arrays[1:]]

    def _pull_whole_tables(self, key: Key, outs: Sequence[RowSparse], ignore_sparse: bool) -> None:
        if ignore_sparse:
            log.warning(f"kv.pull: key {key!r} is not read into a RowSparse; row_sparse_pull reads rows")
            return
        if self._kind.over != "process":
            raise program_error(
                "E-kv-rows", f"kv.pull: a store of type {self.type} gives no whole table; row_sparse_pull reads rows"
            )
        ids = numpy.arange(self._known(key, "pull").shape[0])
        whole = self._backend.pull_rows(key, ids, 0).wait()
        for out in outs:
            out.rows, out.values, out.shape = whole.rows, whole.values.astype(out.dtype), whole.shape

    def _ids(self, key: Key, row_ids: object) -> Array:
        facts = self._known(key, "row_sparse_pull")
        if not facts.is_rows:
            raise program_error("E-kv-rows", f"kv.row_sparse_pull: key {key!r} is not a table; pull reads it")
        ids = numpy.unique(numpy.asarray(to_value(row_ids, "kv.row_sparse_pull")).astype("int64"))
        if ids.size and not (0 <= ids[0] and ids[-1] < facts.shape[0]):
            wrong = ids[0] if ids[0] < 0 else ids[-1]
            raise ValueError(f"kv.row_sparse_pull: row {wrong} is not in {key!r}, a table of {facts.shape[0]} rows")
        return ids


def _is_array_of(given: object, facts: Facts) -> TypeGuard[Array]:
    """Tells whether a value is an array that a backend takes as it is."""
    return (
        type(given) is numpy.ndarray
        and given.dtype == facts.dtype
        and given.shape == facts.shape
        and given.flags.c_contiguous
        and not facts.is_rows
    )


def _rows_wanted(key: Keys, row_ids: object, out: object) -> list[tuple[Key, object, RowSparse | None]]:
    """Returns (key, ids, out) for each table and device."""
    keys = list(cast("Any", key)) if is_list(key) else [key]
    ids = list(cast("Any", row_ids)) if is_list(key) and is_list(row_ids) else [row_ids] * len(keys)
    outs = list(cast("Any", out)) if is_list(key) and is_list(out) else [out] * len(keys)
    if not len(keys) == len(ids) == len(outs):
        raise ValueError(f"kv.row_sparse_pull: {len(keys)} keys, {len(ids)} row_ids, {len(outs)} out")
    found: list[tuple[Key, object, RowSparse | None]] = []
    for one, of_key, into in zip(keys, ids, outs):
        each = list(of_key) if is_list(of_key) and not _is_list_of_numbers(of_key) else [of_key]
        targets = list(into) if is_list(into) else [into]
        if len(each) == 1:
            each = each * len(targets)
        if len(targets) == 1:
            targets = targets * len(each)
        if len(each) != len(targets):
            raise ValueError(f"kv.row_sparse_pull: key {one!r} has {len(each)} row_ids, but {len(targets)} out")
        key_of = to_key(one, "row_sparse_pull")
        found += [(key_of, some, _rows_out(target)) for some, target in zip(each, targets)]
    return found


def _rows_out(out: object) -> RowSparse | None:
    if out is None or isinstance(out, RowSparse):
        return out
    raise TypeError(f"kv.row_sparse_pull: out is a RowSparse, not {type(out).__name__}")


def _is_list_of_numbers(given: object) -> bool:
    """Tells whether lists, one in the other, hold numbers only: they are one array of ids."""
    return all(
        _is_list_of_numbers(one) if isinstance(one, (list, tuple)) else isinstance(one, (int, float, numpy.number))
        for one in cast("Any", given)
    )
