"""Collective operations of the trainers of a job, with or without pservers. The trainers are the ranks of one ring."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING

import numpy

from penstock import _penstock
from penstock._src.base.call_site import call_site, stack_level
from penstock._src.base.errors import program_error, state_error
from penstock._src.executor.process_end import watch_this_thread

if TYPE_CHECKING:
    from collections.abc import Sequence

    from penstock._src.ir.typing import Array


_TYPES = {"float32": "f32", "float64": "f64", "int32": "i32", "int64": "i64"}
_REDUCTIONS = ("sum", "min", "max")


class Workers:
    """Trainers that know each other's addresses. The first operation joins them.

    addresses  the addresses of all trainers, in their order; empty: the trainers do not know each other
    index      the number of this process among the trainers
    count      the number of trainers
    """

    def __init__(self, addresses: list[str], index: int, count: int) -> None:
        self._addresses = list(addresses) if len(addresses) == count else []
        self._index, self._count = index, count
        self._joined = count <= 1

    def _join(self) -> None:
        if self._joined:
            return
        watch_this_thread()
        _penstock.arrays_join(self._addresses, self._index)
        self._joined = True

    def know_each_other(self) -> bool:
        return self._count <= 1 or bool(self._addresses)

    def _require_addresses(self, function: str) -> None:
        if not self.know_each_other():
            raise state_error(
                "E-fleet-workers",
                f"fleet: {function} needs the addresses of all {self._count} trainers; the launcher sets "
                "PADDLE_TRAINER_ENDPOINTS",
            )

    def barrier(self) -> None:
        """Waits until all trainers have called it. Gives a warning, as in Fluid, if they do not know each other."""
        if not self.know_each_other():
            warnings.warn(
                "fleet: the trainers do not wait for each other: PADDLE_TRAINER_ENDPOINTS is not set",
                stacklevel=stack_level(),
            )
            return
        self._join()
        if self._count > 1:
            _penstock.arrays_barrier(_label("barrier_worker")).wait()

    def all_reduce(self, values: Array | Sequence[float], reduction: str = "sum") -> Array:
        """Returns the elementwise sum, minimum or maximum over all trainers, as a new array."""
        if reduction not in _REDUCTIONS:
            raise program_error(
                "E-fleet-reduction", f"fleet: mode must be one of {', '.join(_REDUCTIONS)}, not {reduction!r}"
            )
        array = numpy.array(values, order="C")
        if array.dtype.name not in _TYPES:
            array = array.astype("float64" if array.dtype.kind == "f" else "int64")
        self._require_addresses("all_reduce_worker")
        self._join()
        if self._count > 1 and array.size:
            _penstock.arrays_all_reduce(
                array, _TYPES[array.dtype.name], reduction, _label("all_reduce_worker"), 0
            ).wait()
        return array

    def all_gather(self, value: float) -> list[float]:
        """Returns the numbers of all trainers, in their order."""
        kind = float if isinstance(value, (float, numpy.floating)) else int
        row = numpy.zeros(self._count, "float64" if kind is float else "int64")
        row[self._index] = value
        return [kind(each) for each in self.all_reduce(row)]

    def exchange(self, parts: list[bytes]) -> list[bytes]:
        """Sends parts[i], bytes, to trainer i; returns the parts that this trainer received."""
        self._require_addresses("global_shuffle")
        self._join()
        if self._count == 1:
            return list(parts)
        sizes = numpy.zeros((self._count, self._count), "int64")
        sizes[self._index] = [len(part) for part in parts]
        sizes = self.all_reduce(sizes)
        received = [b""] * self._count
        received[self._index] = parts[self._index]
        for step in range(1, self._count):
            to, source = (self._index + step) % self._count, (self._index - step) % self._count
            incoming = numpy.empty(sizes[source][self._index], "uint8")
            _penstock.arrays_send_recv(
                numpy.frombuffer(parts[to], "uint8"), to, incoming, source, _label("global_shuffle")
            ).wait()
            received[source] = incoming.tobytes()
        return received


def _label(function: str) -> str:
    return ", ".join(part for part in ("fleet." + function, call_site()) if part)


def fill(output: Array | list[float], values: Array) -> None:
    """Writes the values to the caller's array or list, which must have the same length."""
    if len(output) != len(values):
        raise program_error("E-fleet-output", f"fleet: output has {len(output)} elements, but input has {len(values)}")
    for i, value in enumerate(values):
        output[i] = value
