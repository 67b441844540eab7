"""The connection between the launcher and one rank of an elastic job: a socket that the rank inherits.

    link = Link()                        # before the role is started: pass link.descriptor on, set its environment
    link.close_theirs()
    for message in link.read(): ...      # {"event": "join", "after": 0, "why": "rank 1 is gone"}
    link.send({"event": "end", "why": "trainer 1 has ended"})

Messages are JSON objects, one a line. penstock/_src/hvd/rounds.py is the rank's side.
"""

from __future__ import annotations

import json
import os
import socket
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import Any


LINE_MAX = 1 << 16


class Link:
    def __init__(self) -> None:
        self._ours, self._theirs = socket.socketpair()
        self._ours.setblocking(False)
        self._buffer = b""
        self.descriptor = self._theirs.fileno()
        self._inode = os.fstat(self.descriptor).st_ino

    def environment(self) -> dict[str, str]:
        """Returns the variable that holds the descriptor and inode; by the inode, a process that did not inherit the
        socket notices this and uses nothing."""
        return {"PENSTOCK_ELASTIC_FD": f"{self.descriptor}:{self._inode}"}

    def close_theirs(self) -> None:
        """Closes the end that only the role needs."""
        self._theirs.close()

    def read(self) -> list[dict[str, Any]]:
        """Returns the messages that have arrived. What is none is ignored: a role may write anything."""
        try:
            while chunk := self._ours.recv(4096):
                self._buffer = (self._buffer + chunk)[-LINE_MAX:]
        except OSError:  # nothing more now, or the role has ended
            pass
        *lines, self._buffer = self._buffer.split(b"\n")
        return [message for message in map(_parsed, lines) if message is not None]

    def send(self, message: dict[str, Any]) -> None:
        """Sends a message; has no effect if the role has ended."""
        try:
            self._ours.sendall(json.dumps(message).encode() + b"\n")
        except OSError:
            pass

    def close(self) -> None:
        self._ours.close()


def _parsed(line: bytes) -> dict[str, Any] | None:
    try:
        message = json.loads(line)
    except ValueError:
        return None
    return message if isinstance(message, dict) else None
