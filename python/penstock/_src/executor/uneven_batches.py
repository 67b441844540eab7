"""Batches of trainers that have different numbers of batches: before each step, the trainers tell each other whether
they have another batch."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy

from penstock import _penstock
from penstock._src.base.call_site import call_site
from penstock._src.base.errors import program_error, state_error
from penstock._src.executor import joined_trainers, process_end
from penstock._src.executor.data_parallel import LIVE
from penstock._src.ir import lod_tensor
from penstock._src.ir.types import CPUPlace, VarDesc, dtype_name

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from typing import Any

    from penstock._penstock import Scope
    from penstock._src.executor.compiler import CompiledProgram
    from penstock._src.ir.program import Program

    Feeds = Callable[[], Iterable[dict[str, Any]]]


CHOICES = ("", "join", "pad", "error")


def check(on_uneven: str) -> None:
    if on_uneven not in CHOICES:
        raise ValueError(f"BuildStrategy.on_uneven must be one of {', '.join(map(repr, CHOICES))}, not {on_uneven!r}")


def batches_of_compiled(compiled: CompiledProgram, feeds: Feeds) -> Iterator[dict[str, Any]]:
    """Implements CompiledProgram.batches."""
    on_uneven = compiled._on_uneven()
    if not on_uneven:
        raise ValueError("CompiledProgram.batches needs BuildStrategy.on_uneven: 'join', 'pad' or 'error'")
    trainers, rank = compiled._trainers()
    if trainers == 1:
        return iter(feeds())

    def set_live(live: bool) -> None:
        compiled._live = live

    addresses, label = compiled._addresses(), _label()
    program = compiled._require_program()
    return _until_all_end(feeds, on_uneven, label, set_live, program, lambda: _penstock.arrays_join(addresses, rank))


def batches_of_program(program: Program, feeds: Feeds, scope: Scope) -> Iterator[dict[str, Any]]:
    """Implements Executor.batches for a Program."""
    on_uneven = _penstock.on_uneven_of(program.desc)
    if not on_uneven:
        raise ValueError(
            "Executor.batches needs a program that was transpiled with on_uneven: 'join', 'pad' or 'error'"
        )
    compiled = joined_trainers.compiled_of(program)
    if compiled is not None:
        return batches_of_compiled(compiled, feeds)
    was_live = [True]

    def set_live(live: bool) -> None:
        if live != was_live[0]:
            was_live[0] = live
            tell_live(scope, live)

    return _until_all_end(feeds, on_uneven, _label(), set_live, program, lambda: None)


def tell_live(scope: Scope, live: bool) -> None:
    """Tells the program that runs in the scope whether the examples of this trainer count."""
    held = scope.find_var(LIVE)
    if held is None:
        raise state_error(
            "E-uneven-scope",
            "batches: the startup program has not run in this scope; give batches() the scope of run()",
        )
    held.get_tensor().set(numpy.array([live], "float32"), CPUPlace())


def _label() -> str:
    return ", ".join(part for part in ("batches", call_site()) if part)


def _until_all_end(
    feeds: Feeds,
    on_uneven: str,
    label: str,
    set_live: Callable[[bool], None],
    program: Program,
    join: Callable[[], object],
) -> Iterator[dict[str, Any]]:
    process_end.watch_this_thread()
    join()
    own, ended, number = iter(feeds()), False, 0
    last: dict[str, Any] | None = None
    try:
        while True:
            feed = next(own, None)
            ended = ended or feed is None
            step = _penstock.next_uneven_step(not ended, on_uneven, number, label)
            if step == "end":
                return
            if feed is None and step == "pads":
                own = iter(feeds())
                feed = next(own, None)
                if feed is None:
                    raise program_error("E-uneven-pad", "batches: this trainer has no batches to pad with")
            set_live(feed is not None)
            last = feed if feed is not None else _blank(program) if last is None else last
            number += 1
            yield last
    finally:
        set_live(True)


def _blank(program: Program) -> dict[str, Any]:
    """Returns a feed with one example of zeros."""
    feed: dict[str, Any] = {}
    for var in program.list_vars():
        if not getattr(var, "is_data", False) or var.type != VarDesc.VarType.LOD_TENSOR:
            continue
        zeros = numpy.zeros([max(extent, 1) for extent in var.shape], dtype_name(var.dtype))
        levels = [[1]] * var.lod_level
        feed[var.name] = lod_tensor.create_lod_tensor(zeros, levels, CPUPlace()) if levels else zeros
    return feed
