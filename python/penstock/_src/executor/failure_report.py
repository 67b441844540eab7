"""Reports an exception that ends a trainer to its pservers, which pass it on to the other trainers."""

from __future__ import annotations

import sys
import traceback
from typing import TYPE_CHECKING

from penstock import _penstock

if TYPE_CHECKING:
    from types import TracebackType


LINE_MAX = 500
FRAMES_MAX = 3


def _first_line(kind: type[BaseException], value: BaseException | None) -> str:
    """Returns the line that says what is wrong: "ValueError: no more data".

    It is the first line of the exception's text. The lines after it are its op, its inputs and its notes; a SyntaxError
    is preceded by the lines of its source.
    """
    lines = [line.strip() for line in "".join(traceback.format_exception_only(kind, value)).splitlines()]
    named = next((i for i, line in enumerate(lines) if line.partition(":")[0].endswith(kind.__name__)), 0)
    said = [line for line in lines[named:] if line]
    if not said:
        return kind.__name__
    alone = len(said) > 1 and said[0].endswith(kind.__name__ + ":")  # its text begins with an empty line
    return (" ".join(said[:2]) if alone else said[0])[:LINE_MAX]


def _frames(trace: TracebackType | None) -> list[str]:
    """Returns a line for each of the innermost frames: "train.py:17 in main: loss = step(batch)"."""
    return [
        f"{frame.filename}:{frame.lineno} in {frame.name}: {(frame.line or '')[:LINE_MAX]}"
        for frame in traceback.extract_tb(trace)[-FRAMES_MAX:]
    ]


def tell() -> None:
    """Runs when the process ends: reports an uncaught exception to the pservers.

    The interpreter keeps the exception in sys.last_type and similar variables, except for sys.exit(). An error of a
    peer is not reported to pservers, because the connection to them has already ended, but to the other ranks, which
    may be waiting for this one.
    """
    kind = getattr(sys, "last_type", None)
    if kind is None:
        return
    if issubclass(kind, _penstock.PeerError):
        _penstock.abandon_rings(str(sys.last_value).strip().partition("\n")[0][:LINE_MAX])
        return
    _penstock.abandon_rpc(
        _first_line(kind, sys.last_value), _frames(sys.last_traceback), issubclass(kind, KeyboardInterrupt)
    )
