"""The rounds of an elastic job: the launcher tells this process which ranks work together next.

    round = next_round(-1, "")         # waits for the launcher; the environment then states the ranks of the round
    waits = more_wait()                # whether ranks wait to join the round
    round = next_round(round.number, "rank 1 is gone")

The launcher's side is penstock/_src/launch/elastic.py.
"""

from __future__ import annotations

import dataclasses
import json
import os
import select
import socket
import stat
import threading
from typing import TYPE_CHECKING

from penstock import _penstock
from penstock._penstock import PeerError
from penstock._src.base import environment
from penstock._src.base.errors import error_with_id

if TYPE_CHECKING:
    from typing import Any


LOOK_S = 0.1


@dataclasses.dataclass(frozen=True)
class Round:
    number: int
    grows: bool  # whether ranks may join it while it works


class _Launcher:
    """The connection with the launcher, which this process has inherited."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._buffer = b""
        self._more = False  # ranks wait to join the round
        self._over = -1  # the last round of which a rank is lost
        self.process = os.getpid()

    def ask(self, after: int, why: str) -> Round:
        reason = why.partition("\n")[0]
        message = json.dumps({"event": "join", "after": after, "why": reason})
        try:
            self._connection.sendall(message.encode() + b"\n")
            while True:
                answer = self._read()
                if answer["event"] == "end":
                    ends = f"; this rank's round has ended: {reason}" if reason else ""
                    raise error_with_id(
                        PeerError, "E-elastic-end", f"hvd.elastic: the job has no further round: {answer['why']}{ends}"
                    )
                self._note(answer)
                if answer["event"] == "round":
                    self._more = False
                    environment.change(answer["environment"])
                    return Round(answer["round"], answer["grows"])
        except OSError as error:
            if isinstance(error, PeerError):
                raise
            raise _gone(str(error)) from error

    def more_wait(self) -> bool:
        self._take_arrived(0)
        return self._more

    def is_over(self, round: Round, wait_s: float) -> bool:
        self._take_arrived(wait_s)
        return self._over >= round.number

    def _take_arrived(self, wait_s: float) -> None:
        while b"\n" in self._buffer or select.select([self._connection], [], [], wait_s)[0]:
            self._note(self._read())
            wait_s = 0

    def _note(self, message: Any) -> None:
        if message["event"] == "more":
            self._more = True
        elif message["event"] == "over":
            self._over = max(self._over, message["round"])

    def _read(self) -> Any:
        while b"\n" not in self._buffer:
            chunk = self._connection.recv(1 << 16)
            if not chunk:
                raise _gone("its connection has ended")
            self._buffer += chunk
        line, _, self._buffer = self._buffer.partition(b"\n")
        return json.loads(line)


def _gone(why: str) -> PeerError:
    return error_with_id(PeerError, "E-elastic-launcher", f"hvd.elastic: the launcher of the job is gone: {why}")


_launcher: _Launcher | None = None


def _the_launcher() -> _Launcher | None:
    """Returns the connection; None if this process is not a rank of an elastic job. A forked child is none."""
    global _launcher
    if _launcher is not None:
        return _launcher if _launcher.process == os.getpid() else None
    descriptor, _, inode = environment.text("PENSTOCK_ELASTIC_FD").partition(":")
    if not descriptor.isdigit() or not inode.isdigit():
        return None
    try:
        facts = os.fstat(int(descriptor))
    except OSError:
        return None
    if not stat.S_ISSOCK(facts.st_mode) or facts.st_ino != int(inode):
        return None
    os.set_inheritable(int(descriptor), False)
    _launcher = _Launcher(socket.socket(fileno=int(descriptor)))
    return _launcher


def is_elastic() -> bool:
    """Returns whether the launcher forms rounds of this process's job."""
    return _the_launcher() is not None


def next_round(after: int, why: str) -> Round:
    """Waits for the next round, and sets the environment to its ranks.

    Args:
        after: the round that this process was in; -1: none.
        why: why it has ended.

    Raises:
        PeerError: there is no further round (E-elastic-end), or no launcher (E-elastic-launcher).
    """
    launcher = _the_launcher()
    if launcher is None:
        raise _gone("this process is not a rank of an elastic job")
    return launcher.ask(after, why)


class Watch:
    """Ends the wait for the ranks of a round, in a block that joins them, when the launcher says that one is lost.

    A rank that has never come cannot be missed by the others: they would wait until the time limit.
    """

    def __init__(self, round: Round) -> None:
        self._round = round
        self._launcher = _the_launcher()
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._look, name="penstock.round", daemon=True)
        self.ended = False  # the wait, because a rank is lost

    def __enter__(self) -> Watch:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self._thread.join()

    def _look(self) -> None:
        while self._launcher is not None and not self._done.is_set():
            try:
                over = self._launcher.is_over(self._round, LOOK_S)
            except (OSError, ValueError):  # the launcher is gone, and ends this process
                return
            if over:
                self.ended = True
                _penstock.arrays_cancel()  # again and again, because the wait may not have begun
                self._done.wait(LOOK_S)


def more_wait() -> bool:
    """Returns whether the launcher has said that ranks wait to join."""
    launcher = _the_launcher()
    return launcher is not None and launcher.more_wait()
