"""Runs a data-parallel program on several places of this process.

All places run one program, which is compiled once. Each runs the forward and backward pass of its part of the batch on
its own thread. Gradients are averaged over all places, and the first place updates the parameters, which all places
share. State that forward passes update (the running moments of batch_norm, the sums of a metric) is kept by each place
separately; the scope holds that of the first place.
"""

from __future__ import annotations

import threading
import weakref
from typing import TYPE_CHECKING

import numpy

from penstock import _penstock
from penstock._penstock import LoDTensor, LoDTensorArray
from penstock._src.base.errors import program_error, state_error
from penstock._src.ir.program import OpRole, Program
from penstock._src.ir.types import CPUPlace

if TYPE_CHECKING:
    from collections.abc import Sequence

    from penstock._penstock import RuntimeVariable, Scope, _Feeds, _Fetched
    from penstock._src.ir.typing import Array, Feed


def asks_servers(program: Program) -> bool:
    """Returns whether the program exchanges parameters with pservers; such a program runs on one place."""
    return any(op._role & OpRole.RPC for op in program.global_block().ops)


def uses_updates(program: Program) -> bool:
    """Returns whether an op reads a temporary value that an update computes, such as a gradient of which the loss
    scaling depends. Only the first place computes updates, so such a program runs on one place."""
    made: set[str] = set()
    block = program.global_block()
    for op in block.ops:
        if op._role & OpRole.Optimize:
            made.update(name for name in op.output_arg_names if name in block.vars and not block.var(name).persistable)
        elif not made.isdisjoint(op.input_arg_names):
            return True
    return False


def trains(program: Program) -> bool:
    """Returns whether an op of the program completes the gradient of a parameter."""
    return any(
        op.has_attr("op_role_var") and op.attr("op_role_var") and op._role & OpRole.Backward
        for op in program.global_block().ops
    )


LIVE = "@RANK_LIVE@"  # variable that tells the program whether the examples of its place or trainer count


class _Repeated(list["tuple[str, LoDTensor | Array]"]):
    """The feeds of a place without examples, which repeats one that does not count."""


class PlacesOfProgram:
    """A program for several places, and the scopes of each place.

    Args:
        program (Program): the program that one place would run.
        count (int): the number of places, at least 2.
        reduction (str): how gradients are combined: 'mean' or 'sum'.
        sync_batch_norm (bool): whether batch_norm computes its moments over the examples of all places.
        on_uneven (str): what happens if a batch has fewer examples than places; reduction is then 'shares'.
    """

    def __init__(
        self, program: Program, count: int, reduction: str, sync_batch_norm: bool, on_uneven: str = ""
    ) -> None:
        self.count = count
        self._on_uneven = on_uneven
        self._trains = trains(program)
        self._program = program
        if self._trains:
            addresses = [f"127.0.0.1:{place + 1}" for place in range(count)]  # placeholders, never connected to
            self._program = Program._of(
                _penstock.data_parallel(
                    program.desc, addresses, 0, 1, reduction, sync_batch_norm=sync_batch_norm, places=True
                )[0]
            )
        self._written = set(_penstock.written_at_each_place(self._program.desc))
        self._whole_steps = any(
            op.type == "read" and op.has_attr("drop_last") and op.attr("drop_last") for op in program.global_block().ops
        )
        self._persistables = {var.name for var in program.list_vars() if var.persistable}
        self._places = _penstock.Places(count)
        self._running = threading.Lock()
        # By scope: the scopes of the places after the first; whether the examples of each place count.
        self._others: weakref.WeakKeyDictionary[Scope, list[Scope]] = weakref.WeakKeyDictionary()
        self._live: weakref.WeakKeyDictionary[Scope, list[bool | None]] = weakref.WeakKeyDictionary()

    def check_count(self, feeds: int) -> None:
        """Raises ProgramError unless there is one feed for each place. A program that does not train may have fewer
        feeds, which go to the first places."""
        if feeds > self.count or (feeds < self.count and self._trains):
            raise program_error(
                "E-places-feeds", f"feed is a list of {feeds} dicts, but {self.count} places run the program"
            )

    def split(self, feeds: _Feeds) -> list[_Feeds]:
        """Splits each batch as Fluid does: each place gets the same number of examples, rounded up, and the last one
        the rest, so 7 examples on 4 places are split 2, 2, 2, 1. If that leaves a place of a program that trains
        without examples, which Fluid rejects, the numbers of examples differ by at most one.

        Args:
            feeds (list[tuple]): names with arrays or LoDTensors. A tensor with sequences is split between sequences. A
                single row for a persistable variable is fed to every place.

        Returns:
            list[list[tuple]]: the feeds of each place that runs, which may be fewer than all if the program does not
            train.

        Raises:
            penstock.ProgramError: E-places-examples: a batch has fewer examples than places, and the program trains
                without on_uneven 'join' or 'pad'.
        """
        values = [
            (name, numpy.asarray(value), value.lod() if isinstance(value, LoDTensor) else []) for name, value in feeds
        ]
        sizes = {name: _examples_in(array, lod) for name, array, lod in values}
        for_all = {name for name in sizes if sizes[name] == 1 and name in self._persistables}
        parted = {name: size for name, size in sizes.items() if name not in for_all}
        used = min(
            [self.count, *(size if self._trains else _parts_in_fluid(size, self.count) for size in parted.values())]
        )
        idle = self._trains and 0 < used < self.count and self._on_uneven in ("join", "pad")
        if used < (self.count if self._trains and not idle else 1):
            fewest = min(parted, key=lambda name: parted[name])
            raise program_error(
                "E-places-examples",
                f"feed: {fewest} has {parted[fewest]} examples for {self.count} places; each needs at least one",
            )
        parts: list[_Feeds] = [[] for _ in range(used)]
        repeated: list[_Feeds] = [
            _Repeated() if self._on_uneven == "join" else [] for _ in range(self.count - used if idle else 0)
        ]
        for name, array, lod in values:
            bounds = _bounds_of_parts(sizes[name], used)
            for place, part in enumerate(parts + repeated):
                if name in for_all:
                    part.append((name, array))
                    continue
                begin, end = (0, 1) if place >= used else bounds[place : place + 2]
                part.append((name, _examples_of(array, lod, begin, end)))
        return parts + repeated

    def run(self, scope: Scope, feeds: Sequence[_Feeds], fetches: Sequence[str]) -> list[list[_Fetched]]:
        """Runs a step.

        Args:
            scope (Scope): holds the parameters.
            feeds (list[list[tuple]]): names with arrays or LoDTensors, for each place that runs.
            fetches (list[str]): names.

        Returns:
            list[list]: for each place, the values of `fetches`. A variable that only the first place computes, like a
            parameter, has its value there for all places. Places whose reader has ended are omitted, unless the
            program trains, and so are places that repeat an example which does not count.

        Raises:
            penstock.EOFException: the readers have ended.
            penstock.StateError: E-places-busy: another thread runs the program.
        """
        if not self._running.acquire(blocking=False):
            raise state_error("E-places-busy", "the program is running on its places already")
        try:
            return self._run(self._scopes(scope), feeds, fetches)
        finally:
            self._running.release()

    def _run(self, scopes: list[Scope], feeds: Sequence[_Feeds], fetches: Sequence[str]) -> list[list[_Fetched]]:
        counts = [not isinstance(feed, _Repeated) for feed in feeds]
        if self._on_uneven and self._trains:
            self._set_live(scopes, counts)
        feeds = [self._keep_persistables(scopes[place], feed) for place, feed in enumerate(feeds)]
        values = self._places.run(self._program.desc, fetches, list(zip(scopes, feeds)), not self._trains)
        if self._whole_steps and None in values:
            raise _penstock.EOFException("the last batches are fewer than the places (drop_last)")
        return [of_place for of_place, counted in zip(values, counts) if of_place is not None and counted]

    def _set_live(self, scopes: list[Scope], counts: list[bool]) -> None:
        """Tells the program of each place whether its examples count."""
        unknown: list[bool | None] = [None] * self.count
        known = self._live.setdefault(scopes[0], unknown)
        for place, counted in enumerate(counts):
            if known[place] != counted:
                _set_tensor(scopes[place].var(LIVE), numpy.array([counted], "float32"))
                known[place] = counted

    def _keep_persistables(self, scope: Scope, feed: _Feeds) -> _Feeds:
        """Sets the feeds of persistable variables in the place's scope. Returns the other feeds."""
        rest = []
        for name, value in feed:
            if name in self._persistables:
                _set_tensor(scope.var(name), value)
            else:
                rest.append((name, value))
        return rest

    def _scopes(self, scope: Scope) -> list[Scope]:
        if scope not in self._others:
            self._others[scope] = [scope.new_scope() for _ in range(1, self.count)]
            for child in self._others[scope]:
                for name in sorted(self._written & self._persistables):
                    _copy_tensor(scope, child, name)
        return [scope] + self._others[scope]


def _parts_in_fluid(size: int, places: int) -> int:
    """Returns the number of places for which Fluid has examples: all but the last get size / places, rounded up."""
    return -(-size // -(-size // places)) if size else 0


def _bounds_of_parts(size: int, places: int) -> list[int]:
    """Returns where `places` parts of `size` examples begin, and where the last one ends."""
    if _parts_in_fluid(size, places) == places:
        width = -(-size // places)
        return [min(place * width, size) for place in range(places + 1)]
    return [place * size // places for place in range(places + 1)]


def _copy_tensor(scope: Scope, child: Scope, name: str) -> None:
    """Creates the variable in the child scope, with a copy of its value in the scope if it has one."""
    held, own = scope.find_var(name), child.var(name)
    if held is not None and held.get_tensor()._is_initialized():
        _set_tensor(own, held.get_tensor())


def _set_tensor(variable: RuntimeVariable, value: LoDTensor | Array) -> None:
    variable.get_tensor().set(numpy.array(value), CPUPlace())
    if isinstance(value, LoDTensor) and value.lod():
        variable.get_tensor().set_lod(value.lod())


def _examples_in(array: Array, lod: list[list[int]]) -> int:
    return len(lod[0]) - 1 if lod else (array.shape[0] if array.ndim else 1)


def _examples_of(array: Array, lod: list[list[int]], begin: int, end: int) -> LoDTensor | Array:
    """Returns the examples from begin to end: rows, or sequences of the outermost level."""
    if not lod:
        return array[begin:end]
    levels = []
    for level in lod:
        offsets = level[begin : end + 1]
        levels.append([offset - offsets[0] for offset in offsets])
        begin, end = offsets[0], offsets[-1]
    part = LoDTensor()
    part.set(array[begin:end], CPUPlace())
    part.set_lod(levels)
    return part


def merge(values: Sequence[_Fetched]) -> LoDTensor | list[LoDTensor]:
    """Concatenates the values of all places: their rows and sequences.

    Args:
        values (list[LoDTensor | LoDTensorArray]): the value of each place.

    Returns:
        LoDTensor | list[LoDTensor]: the concatenation. Scalars become a vector. For arrays, a list of the merged
        tensors of each position.

    Raises:
        ValueError: values have different kinds or lengths, or differ in an extent other than the first.
    """
    tensors = [value for value in values if isinstance(value, LoDTensor)]
    arrays = [value for value in values if isinstance(value, LoDTensorArray)]
    if len(arrays) == len(values) and len({len(array) for array in arrays}) == 1:
        return [_merged([array[i] for array in arrays]) for i in range(len(arrays[0]))]
    if len(tensors) != len(values):
        raise program_error(
            "E-places-fetch",
            "fetch_list: the values of the places cannot be concatenated (only tensors, and arrays of the "
            "same length, can); use return_merged=False",
        )
    return _merged(tensors)


def _merged(values: Sequence[LoDTensor]) -> LoDTensor:
    arrays = [numpy.atleast_1d(numpy.asarray(value)) for value in values]
    if len({array.shape[1:] for array in arrays}) > 1:
        raise program_error(
            "E-places-fetch",
            f"fetch_list: the values of the places have shapes {', '.join(str(array.shape) for array in arrays)}, "
            "which differ in more than the first extent; use return_merged=False",
        )
    merged = LoDTensor()
    merged.set(numpy.concatenate(arrays), CPUPlace())
    lengths = [value.recursive_sequence_lengths() for value in values]
    if any(lengths):
        merged.set_recursive_sequence_lengths([sum(of_level, []) for of_level in zip(*lengths)])
    return merged


def join(feeds: Sequence[Feed]) -> dict[str, LoDTensor]:
    """Concatenates the feeds of several places to one feed, for a program that runs on one place."""
    joined = {}
    for name in feeds[0]:
        tensors = []
        for feed in feeds:
            if set(feed) != set(feeds[0]):
                raise program_error(
                    "E-places-feed",
                    f"feed: the dicts of the places have different names: {sorted(feeds[0])} and {sorted(feed)}",
                )
            value = feed[name]
            if not isinstance(value, LoDTensor):
                array, value = value, LoDTensor()
                value.set(numpy.asarray(array), CPUPlace())
            tensors.append(value)
        joined[name] = _merged(tensors)
    return joined
