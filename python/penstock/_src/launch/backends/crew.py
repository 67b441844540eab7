"""Runs the tasks of a job on several hosts to their end, through a keeper on each.

    code = run_crew(tasks, options, attempt=0)

The first failure starts the grace period of the others, as in the supervisor of one machine's roles; after it, on a
signal, or when a host is lost, everything is ended on every host. The output of each task goes to its log here, and to
the terminal.
"""

from __future__ import annotations

import os
import selectors
import shutil
import signal
import sys
import tempfile
import threading
import time
from typing import TYPE_CHECKING

from penstock._src.launch.backends.connection import Connection, ConnectionLost
from penstock._src.launch.backends.copies import Copy, has_rsync, wait_for_copies
from penstock._src.launch.backends.keeper import BEAT_S
from penstock._src.launch.errors import JobError
from penstock._src.launch.logs import last_lines, open_log, say
from penstock._src.launch.role_process import describe_end, shell_status
from penstock._src.launch.stop import Stop

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Iterator
    from typing import Any, BinaryIO

    from penstock._src.launch.backends.hosts import Host
    from penstock._src.launch.backends.tasks import Task


EXIT_FAILED = 1
GRACE_S = 5.0
END_S = 15.0  # for the scheduler and the pservers, once all trainers have ended
STOP_S = 2.5  # between a signal and the end of everything
CLOSE_S = 1.5
POLL_S = 0.1
LAST_LINES = 20


class _Running:
    """A task, its log, and how it ended."""

    def __init__(self, task: Task, log_path: str, log: BinaryIO) -> None:
        self.task = task
        self.log_path = log_path
        self.log = log
        self.prefix = f"[{task.host.name}] " if task.kind == "launcher" and task.host else f"[{task.name}] "
        self.line = b""  # the begin of a line of output
        self.outcome = ""  # "": it runs

    def take(self, text: str) -> None:
        """Adds output to the log, and whole lines to the terminal."""
        data = text.encode(errors="surrogateescape")
        self.log.write(data)
        self.log.flush()
        *lines, self.line = (self.line + data).split(b"\n")
        self.show(lines)

    def show(self, lines: list[bytes]) -> None:
        for line in lines:
            say(self.prefix + line.decode(errors="replace"), sys.stdout)

    def close(self) -> None:
        if self.line:
            self.show([self.line])
        self.log.close()


class Crew:
    def __init__(self, tasks: list[Task], options: Namespace, stop: Stop, attempt: int) -> None:
        self._options = options
        self._stop = stop
        self._attempt = attempt
        self._running: dict[str, _Running] = {}
        self._tasks = tasks
        self._control = tempfile.mkdtemp(prefix="penstock-")
        self._connections: dict[Host | None, Connection] = {}
        self._folders: dict[Host | None, str] = {}  # those that the hosts have made
        self._selector = selectors.DefaultSelector()
        self._over = threading.Event()
        self._asked = False  # the launchers of the hosts have been asked to save and end
        self._code: int | None = None  # of the first failure
        self._deadline: float | None = None  # when everything is ended

    def run(self) -> int:
        # The first SIGTERM asks launchers of jobs with checkpoints to save the last step; a second one ends all.
        self._stop.saves = self._options.num_workers is None and bool(self._options.checkpoint_steps)
        try:
            self._connect()
            if self._options.sync_dst_dir and not self._copy():
                return self._end_of_stop()
            self._start()
            return self._watch()
        except JobError as error:
            say(f"error: launch: {error.line()}")
            return self._end_of_stop() if self._stop.signal is not None else EXIT_FAILED
        finally:
            self._stop.saves = False
            self._end_all()

    def _connect(self) -> None:
        """Connects to all hosts at once, and waits until their keepers run. Raises JobError."""
        threading.Thread(target=self._beat, daemon=True).start()
        for host in dict.fromkeys(task.host for task in self._tasks):
            control = os.path.join(self._control, str(len(self._connections)))
            connection = Connection(host, self._options, control)
            self._connections[host] = connection
            self._selector.register(connection, selectors.EVENT_READ, connection)
        deadline = time.monotonic() + self._options.join_s
        while waiting := [one for one in self._connections.values() if not one.is_ready]:
            if not self._pump():
                raise JobError("stopped while it connected to the hosts", "E-launch-host")
            if time.monotonic() > deadline:
                raise JobError(
                    f"no connection to {waiting[0].name} within {self._options.join_s:g} s (--join_s)", "E-launch-host"
                )

    def _beat(self) -> None:
        while not self._over.wait(BEAT_S):
            for connection in list(self._connections.values()):
                connection.beat()

    def _copy(self) -> bool:
        """Copies the current folder to all hosts at once; returns False on a signal. Raises JobError."""
        away = [one for host, one in self._connections.items() if host is not None]
        for connection in away:
            connection.send(folder=self._options.sync_dst_dir)
        while len(self._folders) < len(away):
            if not self._pump():
                return False
        copies = []
        for connection in away:
            assert connection.host is not None
            rsync = has_rsync() and connection.has_rsync
            folder = self._folders[connection.host]
            copies.append(Copy(connection.host, self._options, connection.control, folder, rsync))
        return wait_for_copies(copies, self._pump)

    def _start(self) -> None:
        for task in self._tasks:
            path = os.path.join(self._options.log_dir, task.log_name)
            log = open_log(path, continues=self._attempt > 0)
            self._running[task.name] = _Running(task, path, log)
            self._connections[task.host].send(
                start=task.name,
                command=task.command,
                environment={**task.environment, "PENSTOCK_RESTART_COUNT": str(self._attempt)},
                folder=self._folders.get(task.host, task.folder),
            )

    def _watch(self) -> int:
        while any(not one.outcome for one in self._running.values()):
            if not self._pump():
                return self._end_of_stop()
            if self._deadline is not None and time.monotonic() > self._deadline:
                self._end_late()
                break
        return self._code or 0

    def _pump(self) -> bool:
        """Handles what the hosts say; returns whether no signal has come. Raises JobError."""
        for key, _ in self._selector.select(POLL_S):
            self._hear(key.data)
        for connection in self._connections.values():  # those that are silent
            self._hear(connection)
        if self._stop.asked and not self._asked:
            self._asked = True
            for connection in self._connections.values():
                connection.send(signal=signal.SIGTERM)
        return self._stop.signal is None

    def _hear(self, connection: Connection) -> None:
        try:
            messages = connection.receive()
        except ConnectionLost as lost:
            raise JobError(f"{connection.name} is gone: {lost}", "E-launch-host") from lost
        for message in messages:
            try:
                self._take(connection, message)
            except (LookupError, TypeError, AttributeError, ValueError) as error:
                what = f"{connection.name} sent a message that cannot be served: {error!r}"
                raise JobError(what, "E-launch-host") from error

    def _take(self, connection: Connection, message: dict[str, Any]) -> None:
        """Handles a message of a keeper; raises JobError, or another error if no keeper sends such a message."""
        if "out" in message:
            self._running[message["out"]].take(message["text"])
        elif "end" in message:
            self._note_end(self._running[message["end"]], int(message["code"]))
        elif "refused" in message:
            one = self._running[message["refused"]]
            raise JobError(f"{one.task.name} cannot start on {connection.name}: {message['why']}", "E-launch-start")
        elif "made" in message:
            if message["why"]:
                raise JobError(
                    f"the folder {message['made']} cannot be made on {connection.name}: {message['why']}",
                    "E-launch-copy",
                )
            self._folders[connection.host] = str(message["made"])

    def _note_end(self, one: _Running, code: int) -> None:
        one.outcome, failed = describe_end(code)
        if failed:
            self._fail(one, shell_status(code))
        left = [other for other in self._running.values() if not other.outcome]
        if left and all(other.task.kind in ("scheduler", "pserver") for other in left) and self._deadline is None:
            self._deadline = time.monotonic() + END_S

    def _fail(self, one: _Running, status: int) -> None:
        """Reports the first failure; starts the others' grace period."""
        if self._code is not None:
            return
        self._code = status
        grace = GRACE_S if self._options.grace_s is None else self._options.grace_s
        self._deadline = time.monotonic() + grace
        say(f"error: launch: {self._title(one)} {one.outcome}   [E-launch-role]")
        if one.task.kind != "launcher":  # which explains the failure itself
            say(f"  last lines of {one.log_path}:")
            for line in last_lines(one.log_path, LAST_LINES):
                say(f"    {line}")

    def _end_late(self) -> None:
        late = [one for one in self._running.values() if not one.outcome]
        names = ", ".join(map(self._title, late))
        if self._code is not None:
            say(f"launch: ended after the grace period: {names}")
            return
        self._code = EXIT_FAILED
        say(f"error: launch: did not end within {END_S:g} s after the last trainer: {names}   [E-launch-role]")

    @staticmethod
    def _title(one: _Running) -> str:
        return one.task.name + ("" if one.task.host is None else f" on {one.task.host.name}")

    def _end_of_stop(self) -> int:
        """A signal has come: lets the tasks end by themselves for a moment; returns the exit code."""
        number = self._stop.signal
        assert number is not None
        name = signal.Signals(number).name
        for connection in self._connections.values():
            connection.send(signal=number)
        deadline = time.monotonic() + STOP_S
        while any(not one.outcome for one in self._running.values()) and time.monotonic() < deadline:
            self._code = 0  # what ends now is no failure
            try:
                self._pump()
            except JobError:
                break
        say(f"launch: stopped by {name}; all processes on all hosts were ended")
        return self._stop.exit_code()

    def _end_all(self) -> None:
        for connection in self._connections.values():
            connection.send(stop=0)
        deadline = time.monotonic() + CLOSE_S
        for connection in self._connections.values():
            connection.close(max(0.0, deadline - time.monotonic()))
        self._over.set()
        for one in self._running.values():
            one.close()
        shutil.rmtree(self._control, ignore_errors=True)


def run_crew(tasks: list[Task], options: Namespace, stop: Stop, attempt: int) -> int:
    """Runs the tasks to their end; returns the exit code: 0, that of the first task that failed, or 128 + a signal.

    options  join_s: how long to wait for the hosts; grace_s: seconds that the others have after the first failure;
             log_dir, sync_dst_dir, ssh_option, remote_python
    stop     a Stop whose handlers are installed
    """
    return Crew(tasks, options, stop, attempt).run()


def describe(tasks: list[Task], lines: list[str]) -> Iterator[str]:
    """Returns the output of --dry_run: `lines`, then each task."""
    yield from lines
    for task in tasks:
        yield from task.describe()
