"""Restarts of single roles: whether a role whose process was killed is started again by itself, and when.

    restarts = Restarts({"pserver": job.role_restarts, "trainer": job.trainer_restarts}, job.shrinks)
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
    from collections.abc import Callable, Mapping

    from penstock._src.launch.outcome import Told
    from penstock._src.launch.role_process import Process


FIRST_DELAY_S = 0.25
LATER_DELAY = 4  # each delay is this many times the one before


class Restarts:
    """`limits`: how often each role of a kind may be restarted; 0: never. `shrinks`: without a trainer that has died,
    the others go on. `tell`: prints a line of the report, on every machine of the job."""

    def __init__(self, limits: Mapping[str, int], shrinks: bool = False, tell: Callable[[str], object] = say) -> None:
        self._limits = limits
        self._shrinks = shrinks
        self._tell = tell
        self._due: list[tuple[float, Process]] = []
        self._over = False  # nobody is left whom a process that comes back could find

    def note_end(self, process: Process) -> None:
        """A role has ended. Pservers end once all trainers have completed."""
        self._over = self._over or (process.role.kind == "pserver" and not process.failed)

    def concerns(self, process: Process) -> bool:
        """Returns whether roles of this kind are restarted in this job."""
        return self._limits.get(process.role.kind, 0) > 0

    def take(self, process: Process, told: Told, complete: bool) -> bool:
        """Returns whether the role of a process that has failed is started again. If not, the job ends.

        complete  whether a trainer has completed: nobody can repeat for a pserver what it has sent
        """
        code = cast(int, process.poll())
        if code >= 0 or not self.concerns(process):
            return False
        process.ended = time.monotonic()
        process.outcome = describe_end(code)[0]
        died = f"launch: {name_of(process)} {process.outcome}, {process.ended - process.started:.1f} s after its start"
        if why_not := self._why_not(process, told, complete):
            self._tell(f"{died}; it cannot be started again: {why_not}")
            return False
        signal_group(process.pid, signal.SIGKILL)  # what it has started itself
        delay = FIRST_DELAY_S * float(LATER_DELAY**process.restart)
        self._due.append((process.ended + delay, process))
        which = f"restart {process.restart + 1} of {self._limits[process.role.kind]}"
        others = "go on without it until then" if self._leaves_out(process) else "wait for it"
        self._tell(f"{died}; it is started again in {delay:g} s, {which}, and the other roles {others}")
        return True

    def _leaves_out(self, process: Process) -> bool:
        return self._shrinks and process.role.kind == "trainer"

    def leave_out(self, process: Process, told: Told, complete: bool) -> bool:
        """Returns whether the job goes on, and may end well, without the role of a process that has failed and is not
        started again: a trainer that was killed, or that has come back too late to take part.

        complete  whether a trainer has completed
        """
        code = cast(int, process.poll())
        if not self._leaves_out(process) or (code >= 0 and not (complete and told.reacted)):
            return False
        self._tell(f"launch: {name_of(process)} {describe_end(code)[0]}; the job goes on without it")
        return True

    def take_late(self, processes: list[Process]) -> list[Process]:
        """Returns the trainers that were started again and have found nobody, when all other roles have ended. Where
        the others go on without a trainer, forgets those that have yet to be started again.

        processes  the last one of each role of this machine
        """
        alive = [one for one in processes if one.outcome is None]
        servers = [one for one in processes if one.role.kind == "pserver"]
        if not servers or any(one in servers for one in (*alive, *self.pending())):
            return []
        if any(one.restart == 0 or one.is_back or one.flight.met() for one in alive):
            return []
        if self._shrinks:
            self.drop()
        return alive

    def _why_not(self, process: Process, told: Told, complete: bool) -> str:
        if self._over:
            return "a pserver has ended, because all trainers had completed there"
        if told.fixed:
            return told.fixed
        if told.reacted:
            return "it was ending already, because of a peer"
        if complete and process.role.kind == "pserver":
            return "a trainer has completed and ended"
        if process.restart >= self._limits[process.role.kind]:
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

    def forget(self, processes: list[Process]) -> None:
        """Forgets those: others take the places of their roles."""
        self._due = [(at, process) for at, process in self._due if process not in processes]

    def drop(self) -> None:
        """Forgets all: the job ends."""
        self._due = []


def say_what_is_back(process: Process, tell: Callable[[str], object]) -> None:
    """Reports what a process that was started again has recovered, once it says so."""
    for line in process.notes.pump():
        if line.startswith(BACK) and process.replaces is not None and not process.is_back:
            process.is_back = True
            took = time.monotonic() - process.replaces.ended
            tell(f"launch: {name_of(process)} is back {took:.1f} s after its end: {line.removeprefix(BACK)}")
