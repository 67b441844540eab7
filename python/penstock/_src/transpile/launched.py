"""Compares the pservers that a script names with those that the launcher has started.

A script that builds addresses from hosts and one port (PADDLE_PSERVERS and PADDLE_PORT) names wrong ones if a machine
has several pservers. Its trainers would then wait for a pserver that nothing starts.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from penstock import _penstock
from penstock._src.base import environment, log

if TYPE_CHECKING:
    from collections.abc import Iterator

    from penstock._penstock import ProgramError


def _started() -> list[str]:
    return environment.listed("PADDLE_PSERVER_ENDPOINTS")


def _note(pservers: list[str]) -> str:
    """Returns a note with the launcher's pservers; '' if the script names only such, or there is no launcher."""
    started = _started()
    if not started or set(pservers) <= set(started):
        return ""
    return f"the launcher has started pservers at {', '.join(started)}; PADDLE_PSERVER_ENDPOINTS lists them"


@contextlib.contextmanager
def compared(pservers: list[str]) -> Iterator[None]:
    """Within it, an error about pservers' addresses gets a note with the launcher's pservers. At its end, a warning
    names the addresses at which the launcher has started no pserver."""
    note = _note(pservers)
    try:
        yield
    except _penstock.ProgramError as error:
        if note and error.id.startswith("E-plan-pserver"):
            raise _with(error, "note: " + note) from None
        raise
    if note:
        started = _started()
        missing = [address for address in pservers if address not in started]
        log.warning(f"transpile: no pserver was started at {', '.join(missing)}: {note}")


def _with(error: ProgramError, line: str) -> ProgramError:
    noted = type(error)(f"{error}\n  {line}")
    noted.id, noted.details = error.id, [*error.details, line]
    return noted
