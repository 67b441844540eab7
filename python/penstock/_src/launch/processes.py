"""The processes of one machine's roles: who lives, whose place others have taken, and how all of them are ended.

processes = Processes(registry, console)
processes.open()                             # before the first start
processes.start(role, job)
processes.start_again(ended, job)            # the role of an ended process, by itself
for process in processes.take_ended(): ...   # waits a moment for ends
processes.signal(signal.SIGTERM)             # to all groups, also of processes that have ended
processes.release()
"""

from __future__ import annotations

import os
import selectors
import signal
import time
from typing import TYPE_CHECKING, cast

from penstock._src.launch.errors import JobError
from penstock._src.launch.guard import signal_group
from penstock._src.launch.logs import remove
from penstock._src.launch.role_process import metrics_path, start

if TYPE_CHECKING:
    from collections.abc import Callable

    from penstock._src.launch.console import Console
    from penstock._src.launch.link import Link
    from penstock._src.launch.plan import Job, Role
    from penstock._src.launch.role_process import Process


POLL_S = 0.1
RETIRE_S = 5.0  # the time in which a pserver may end by itself whose place others have taken


class StartError(JobError):
    """The system could not start a process."""

    def __init__(self, what: str, error: OSError) -> None:
        super().__init__(f"cannot start {what}: {error.strerror or error}   [E-launch-start]", "E-launch-start")


class Processes:
    """`registry`: a descriptor that receives the number of each process group (guard.py); `console` shows their
    output."""

    def __init__(self, registry: int, console: Console) -> None:
        self.last: list[Process] = []  # the last of each role
        self._registry = registry
        self._console = console
        self._replaced: list[Process] = []  # those whose roles were started again
        self._retired: list[Process] = []  # pservers whose place others have taken
        self._retired_at = 0.0
        self._logged: set[str] = set()  # names of logs
        self._selector: selectors.BaseSelector | None = None

    def open(self) -> None:
        """Raises StartError if the launcher has no descriptor left."""
        try:
            self._selector = selectors.DefaultSelector()
        except OSError as error:
            raise StartError("any role", error) from error

    def start(self, role: Role, job: Job, link: Link | None = None) -> None:
        """Raises JobError, also StartError, as start_again."""
        process = self._start(role, job, 0, link)
        self.last.append(process)
        self._console.begins(process)

    def start_again(self, ended: Process, job: Job, link: Link | None = None) -> None:
        process = self._start(ended.role, job, ended.restart + 1, link)
        process.replaces = ended
        self.last[self.last.index(ended)] = process
        self._replaced.append(ended)

    def alive(self) -> list[Process]:
        """Returns those that live, without those whose place others have taken."""
        return [process for process in self.last if process.outcome is None]

    def progress(self) -> float | None:
        """Returns when a process last made progress, or was started again; None if none has."""
        known = [process.flight.progress() for process in self.alive()]
        known += [process.started for process in self.alive() if process.restart > 0]
        return max((at for at in known if at is not None), default=None)

    def take_ended(self) -> list[Process]:
        """Returns those that have ended, each once; waits for up to POLL_S if there is none."""
        ended = []
        if self._selector is not None:
            for key, _ in self._selector.select(POLL_S):
                self._selector.unregister(key.fileobj)
                ended.append(cast("Process", key.data))
        return ended

    def retire(self, job: Job) -> list[Process]:
        """Returns the pservers, whose place those of `job` will take: they may end by themselves, or be ended. Their
        numbers of metrics are forgotten."""
        old = [process for process in self.last if process.role.kind == "pserver"]
        self._retired += old
        self._retired_at = time.monotonic()
        for process in old:
            remove(metrics_path(job, process.role))  # of a number that there may be no more
        self.last = [process for process in self.last if process not in old]
        roles = {role.index: role for role in job.roles if role.kind == "trainer"}
        for process in self.last:
            process.role = roles[process.role.index]
        return old

    def is_retired(self, process: Process) -> bool:
        return process in self._retired

    def end_retired(self, has_moved: Callable[[int], bool]) -> None:
        """Ends the pservers that nobody needs any more, and that wait for a trainer which has died.

        has_moved  whether a trainer has left them
        """
        present = [process for process in self._retired if process.outcome is None]
        if not present or time.monotonic() < self._retired_at + RETIRE_S:
            return
        old = [one for one in self.alive() if one.role.kind == "trainer" and one.started < self._retired_at]
        if all(has_moved(one.role.index) for one in old):
            for process in present:
                signal_group(process.pid, signal.SIGKILL)

    def signal(self, number: signal.Signals) -> None:
        """Signals all process groups, those of ended processes too, whose helpers may live."""
        for process in self._all():
            signal_group(process.pid, number)

    def any_alive(self) -> bool:
        """Returns whether one lives, perhaps one whose place others have taken."""
        return self._selector is not None and any(one.outcome is None for one in (*self._retired, *self.last))

    def release(self) -> None:
        """Frees the groups' numbers."""
        for process in self._all():
            os.close(process.handle)
            if process.outcome is None:
                process.outcome, process.failed = "could not be ended", True
            else:
                process.popen.wait()

    def _all(self) -> list[Process]:
        return [*self._replaced, *self._retired, *self.last]

    def _start(self, role: Role, job: Job, restart: int, link: Link | None) -> Process:
        continues = role.log_name in self._logged
        self._logged.add(role.log_name)
        try:
            process = start(role, job, self._registry, restart, link, continues)
            cast(selectors.BaseSelector, self._selector).register(process.handle, selectors.EVENT_READ, process)
        except OSError as error:
            raise StartError(role.name, error) from error
        return process
