"""Operations of ranks: their rings, labels and types, the operations in progress, and handles of those that the caller
waits for later."""

from __future__ import annotations

import itertools
import threading
import zlib
from typing import TYPE_CHECKING

import numpy

from penstock import _penstock
from penstock._src.base.call_site import call_site
from penstock._src.base.errors import not_built, program_error
from penstock._src.executor.process_end import watch_this_thread
from penstock._src.hvd import joining, timeline
from penstock._src.hvd.process_sets import ring_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from penstock._penstock import ProgramError, _PendingArrays
    from penstock._src.hvd.process_sets import ProcessSet
    from penstock._src.ir.typing import Array


# The types that ranks exchange, by numpy's name; bools cannot be reduced.
TYPES = {
    "float16": "f16",
    "float32": "f32",
    "float64": "f64",
    "int8": "i8",
    "uint8": "u8",
    "int32": "i32",
    "int64": "i64",
    "bool": "bool",
}
_BY_DTYPE = {numpy.dtype(name): kind for name, kind in TYPES.items()}  # dtype.name takes microseconds


class Reduction:
    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return f"hvd.{self.name}"


Average, Sum, Adasum = Reduction("Average"), Reduction("Sum"), Reduction("Adasum")
Min, Max, Product = Reduction("Min"), Reduction("Max"), Reduction("Product")
_NAMES = {Average: "mean", Sum: "sum", Min: "min", Max: "max", Product: "product"}


class Call:
    """One call of a function of this package: the ring of its process set, and the label of its operations."""

    def __init__(self, function: str, name: str | None = None, process_set: ProcessSet | None = None) -> None:
        watch_this_thread()
        if name is not None and not isinstance(name, str):
            raise TypeError(f"hvd.{function}: name must be a str, not {type(name).__name__}")
        self.function = function
        self.ring = ring_of(function, process_set)
        self.name = name or f"hvd.{function}"
        self.label = ", ".join(part for part in (self.name, call_site()) if part)
        # Names must be equal on all ranks.
        self.tag = zlib.crc32(name.encode("utf-8", "surrogateescape")) if name else 0

    def _start(self, kind: str, start: Callable[[], _PendingArrays], **more: Any) -> _PendingArrays:
        if self.ring.number != 0:
            return start()
        return joining.start(dict(more, kind=kind, label=self.label, tag=self.tag), start)

    def how_to_reduce(
        self, average: bool | None, op: Any, prescale_factor: Any, postscale_factor: Any
    ) -> tuple[Reduction, float, float]:
        """Returns the Reduction that a caller's average and op name, and the factors before and after it."""
        reduction = reduction_of(self.function, average, op)
        before = factor_of(self.function, "prescale_factor", prescale_factor)
        after = factor_of(self.function, "postscale_factor", postscale_factor)
        if reduction is Adasum and self.ring.number != 0:
            raise not_built(f"hvd.{self.function}: Adasum works on all ranks of the job only, not on a process set")
        return reduction, before, after

    def all_reduce(self, array: Array, reduction: Reduction) -> _PendingArrays:
        """Starts the reduction of `array` in place."""
        kind = type_of(self.function, array, reduced=True)
        how = _NAMES[reduction]
        return self._start(
            "all_reduce",
            lambda: _penstock.arrays_all_reduce(array, kind, how, self.label, self.tag, self.ring.number),
            type=kind,
            count=array.size,
            how=how,
        )

    def adasum(self, array: Array) -> None:
        """Replaces `array` by its Adasum; returns None when that is done."""
        kind = type_of(self.function, array, reduced=True)
        joining.run(
            dict(kind="adasum", label=self.label, tag=self.tag, type=kind, count=array.size),
            lambda: _penstock.arrays_adasum(array, kind, self.label, self.tag),
        )

    def all_gather(self, array: Array, out: Array, counts: list[int]) -> _PendingArrays:
        kind = type_of(self.function, array)
        return self._start(
            "all_gather",
            lambda: _penstock.arrays_all_gather(array, out, kind, counts, self.label, self.tag, self.ring.number),
        )

    def reduce_scatter(self, array: Array, out: Array, reduction: Reduction) -> _PendingArrays:
        kind = type_of(self.function, array, reduced=True)
        return self._start(
            "reduce_scatter",
            lambda: _penstock.arrays_reduce_scatter(
                array, out, kind, _NAMES[reduction], self.label, self.tag, self.ring.number
            ),
        )

    def broadcast(self, array: Array, root: int) -> _PendingArrays:
        """Starts the broadcast of `array` in place; `root` is a position in the ring."""
        kind = type_of(self.function, array)
        return self._start(
            "broadcast", lambda: _penstock.arrays_broadcast(array, kind, root, self.label, self.tag, self.ring.number)
        )

    def send_recv(self, out: Array, to: int, array: Array, source: int) -> _PendingArrays:
        return self._start(
            "send_recv", lambda: _penstock.arrays_send_recv(out, to, array, source, self.label, self.ring.number)
        )

    def barrier(self) -> _PendingArrays:
        return self._start("barrier", lambda: _penstock.arrays_barrier(self.label, self.ring.number))


class Operation:
    """An operation of one call that was started, and its result: finish(), after all of `pending` have ended."""

    def __init__(self, call: Call, pending: Sequence[_PendingArrays], finish: Callable[..., Any]) -> None:
        self._pending, self._finish = list(pending), finish
        self._event = timeline.begin(call.name, call.function)

    def done(self) -> bool:
        return all(one.done() for one in self._pending)

    def wait(self) -> Any:  # an array, or a list or tuple of arrays, as the function returns
        for one in self._pending:
            one.wait()
        timeline.end(self._event)
        return self._finish()


class Several:
    """Operations of one call; their results are a list."""

    def __init__(self, operations: list[Operation]) -> None:
        self._operations = operations

    def done(self) -> bool:
        return all(one.done() for one in self._operations)

    def wait(self) -> list[Array]:
        return [one.wait() for one in self._operations]


_lock = threading.Lock()
_numbers = itertools.count(1)
_operations: dict[int, Operation | Several] = {}  # by handle


def keep(operation: Operation | Several) -> int:
    """Returns a handle for `synchronize`."""
    with _lock:
        handle = next(_numbers)
        _operations[handle] = operation
    return handle


def replace(handle: int, by: Callable[[Any], Any]) -> None:
    """Replaces the operation of a handle by what `by` makes of it: something with done() and wait()."""
    with _lock:
        _operations[handle] = by(_operations[handle])


def kept(function: str, handle: int) -> Operation | Several:
    """Returns the operation of a handle."""
    operation = _operations.get(handle) if isinstance(handle, int) else None
    if operation is None:
        raise _unknown(function, handle)
    return operation


def take(function: str, handle: int) -> Operation | Several:
    """Returns the operation of a handle, which is then unknown."""
    with _lock:
        operation = _operations.pop(handle, None) if isinstance(handle, int) else None
    if operation is None:
        raise _unknown(function, handle)
    return operation


def forget_all() -> None:
    """Called when the process leaves a round of an elastic job: no operation of it can end."""
    with _lock:
        _operations.clear()


def _unknown(function: str, handle: int) -> ProgramError:
    return program_error(
        "E-hvd-handle", f"hvd.{function}: no operation has the handle {handle!r}; each is synchronized once"
    )


def type_of(function: str, array: Array, reduced: bool = False) -> str:
    """Returns the name of the array's element type in C++."""
    kind = _BY_DTYPE.get(array.dtype)
    if kind is not None and not (reduced and kind == "bool"):
        return kind
    raise program_error(
        "E-hvd-array",
        f"hvd.{function}: ranks do not {'reduce' if reduced else 'exchange'} elements of {array.dtype.name}; use "
        f"{', '.join(each for each in TYPES if not (reduced and each == 'bool'))}",
    )


def copied(array: Array | float) -> Array:
    """Returns a C-contiguous copy with native bytes."""
    array = numpy.asarray(array)
    native = array.dtype if array.dtype.isnative else array.dtype.newbyteorder("=")
    return numpy.array(array, dtype=native, order="C")


def own(function: str, array: Array) -> Array:
    """Returns the array; raises if other ranks cannot write its memory."""
    if not isinstance(array, numpy.ndarray):
        raise TypeError(f"hvd.{function} changes its argument, a numpy array, not {type(array).__name__}")
    if array.flags.c_contiguous and array.flags.writeable and array.flags.aligned and array.dtype.isnative:
        return array
    raise program_error(
        "E-hvd-array",
        f"hvd.{function}: an array that is changed in place must be C-contiguous, aligned, writeable and of native "
        f"bytes; use hvd.{function.rstrip('_')}",
    )


def listed(function: str, tensors: Sequence[Array]) -> list[Array]:
    """Returns the arrays of a grouped operation as a list."""
    if isinstance(tensors, (list, tuple)) and tensors:
        return list(tensors)
    raise program_error(
        "E-hvd-array",
        f"hvd.{function} takes a list of at least one array, not "
        f"{('an empty one' if isinstance(tensors, (list, tuple)) else type(tensors).__name__)}",
    )


def reduction_of(function: str, average: bool | None, op: Reduction | str | None) -> Reduction:
    """Returns the Reduction that a caller's average and op name."""
    if average is not None and op is not None:
        raise program_error("E-hvd-op", f"hvd.{function}: average={average!r} and op={op!r} were both given; give op")
    if average is not None:
        return Average if average else Sum
    op = Average if op is None else op
    if not isinstance(op, Reduction):
        raise program_error(
            "E-hvd-op", f"hvd.{function}: op is {op!r}; it must be hvd.Average, Sum, Adasum, Min, Max or Product"
        )
    return op


def check_mean(function: str, op: Reduction, array: Array) -> None:
    if op is Average and array.dtype.kind in "iu" and array.dtype in _BY_DTYPE:  # others have no sum either
        raise program_error(
            "E-hvd-op", f"hvd.{function}: the mean of {array.dtype.name} may not be one of them; use op=hvd.Sum"
        )


def factor_of(function: str, name: str, value: float | str) -> float:
    """Returns a factor of a caller as a float."""
    if type(value) is float:
        return value
    if isinstance(value, (int, float, numpy.integer, numpy.floating)) and not isinstance(value, bool):
        return float(value)
    raise program_error("E-hvd-op", f"hvd.{function}: {name} is {value!r}; it must be a number")


def scale(array: Array, factor: float) -> Array:
    """Multiplies the array by a factor, in its memory. Integers are truncated, as in Horovod."""
    if factor != 1.0:
        numpy.multiply(array, factor, out=array, casting="unsafe")
    return array
