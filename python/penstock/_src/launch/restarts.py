"""Restarts of single roles: whether a role whose process was killed is started again by itself, and when.

    restarts = Restarts(job.role_restarts)
    restarts.take(process, told, complete=False)   # True: it is started again; says so
    restarts.due(time.monotonic())                 # [process], once its time has come

The other roles go on meanwhile: they wait for it (executor/client). A role that ends with an error of its own is not
started again, because it has told the others, and the error would come again.
"""

from __future__ import annotations

import signal
import time
from typing import TYPE_CHECKING, cast

from penstock._src.launch.guard import signal_group
from penstock._src.launch.logs import say
from penstock._src.launch.outcome import BACK
from penstock._src.launch.role_process import describe_end, name_of

if TYPE_CHECKING:
    from penstock._src.launch.outcome import Told
    from penstock._src.launch.role_process import Process


KINDS = frozenset({"pserver"})  # of roles that can continue where they were killed
FIRST_DELAY_S = 0.25
LATER_DELAY = 4  # each delay is this many times the one before


class Restarts:
    """`limit`: how often each role may be restarted; 0: never."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._due: list[tuple[float, Process]] = []

    def concerns(self, process: Process) -> bool:
        """Returns whether roles of this kind are restarted in this job."""
        return self._limit > 0 and process.role.kind in KINDS

    def take(self, process: Process, told: Told, complete: bool) -> bool:
        """Returns whether the role of a process that has failed is started again. If not, the job ends.

        complete  whether a trainer has completed: nobody can repeat what it has sent
        """
        code = cast(int, process.poll())
        if code >= 0 or not self.concerns(process):
            return False
        process.ended = time.monotonic()
        process.outcome = describe_end(code)[0]
        died = f"launch: {name_of(process)} {process.outcome}, {process.ended - process.started:.1f} s after its start"
        if why_not := self._why_not(process, told, complete):
            say(f"{died}; it cannot be started again: {why_not}")
            return False
        signal_group(process.pid, signal.SIGKILL)  # what it has started itself
        delay = FIRST_DELAY_S * float(LATER_DELAY**process.restart)
        self._due.append((process.ended + delay, process))
        which = f"restart {process.restart + 1} of {self._limit}"
        say(f"{died}; it is started again in {delay:g} s, {which}, and the other roles wait for it")
        return True

    def _why_not(self, process: Process, told: Told, complete: bool) -> str:
        if told.fixed:
            return told.fixed
        if told.reacted:
            return "it was ending already, because of a peer"
        if complete:
            return "a trainer has completed and ended"
        if process.restart >= self._limit:
            return f"it has been restarted {process.restart} times (--max_role_restart)"
        return ""

    def pending(self) -> list[Process]:
        """Returns the ended processes whose roles have yet to be started again."""
        return [process for _, process in self._due]

    def due(self, now: float) -> list[Process]:
        """Returns those whose time has come, and forgets them."""
        found = [process for at, process in self._due if at <= now]
        self._due = [(at, process) for at, process in self._due if at > now]
        return found

    def drop(self) -> None:
        """Forgets all: the job ends."""
        self._due = []


def say_what_is_back(process: Process) -> None:
    """Reports what a process that was started again has recovered, once it says so."""
    for line in process.notes.pump():
        if line.startswith(BACK) and process.replaces is not None:
            took = time.monotonic() - process.replaces.ended
            say(f"launch: {name_of(process)} is back {took:.1f} s after its end: {line.removeprefix(BACK)}")
