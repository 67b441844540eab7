"""Lines between the scheduler and the processes of a job: JSON, with a proof that the sender knows the job's token.

    scheduler -> member    penstock-kv NONCE
    member -> scheduler    PROOF {"nonce": ..., "role": ..., ...}
    then both              PROOF {...}

A proof is an HMAC by the token over the direction, both nonces, the number of the line in its direction, and the line:
no line can be replayed, removed or inserted. What comes without a valid proof is not parsed. The contents are not
secret.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import secrets
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import socket
    from typing import Any

    Message = dict[str, Any]  # JSON

GREETING = "penstock-kv"
LINE_MAX_BEFORE_PROOF = 4096
LINE_MAX = 1 << 20


class LineError(Exception):
    """The connection cannot be used any more; the message gives the reason."""


class Lines:
    """One connected socket; `side` is this end: "scheduler" or "member"."""

    def __init__(self, connection: socket.socket, token: str, side: str) -> None:
        self._socket = connection
        self._token = token.encode()
        self._side = side
        self._nonce = ""  # of the scheduler
        self._nonces = ""  # of both, from the second line on
        self._sent = self._received = 0
        self._in = bytearray()
        self.closed = False

    def fileno(self) -> int:
        return self._socket.fileno()

    def greet(self) -> None:
        """Sends the scheduler's first line."""
        self._nonce = secrets.token_hex(16)
        self._socket.sendall(f"{GREETING} {self._nonce}\n".encode())

    def hello(self, message: Message) -> None:
        """Sends the member's first line; the greeting has arrived."""
        own = secrets.token_hex(16)
        self.send({"nonce": own, **message})
        self._nonces = self._nonce + own

    def send(self, message: Message) -> None:
        text = json.dumps(message, separators=(",", ":"))
        self._socket.sendall(f"{self._proof(self._side, self._sent, text)} {text}\n".encode())
        self._sent += 1

    def read(self) -> list[Message]:
        """Returns the messages that have arrived, after one read of the socket; an empty list if there is none yet. At
        the end of the connection `closed` is set.

        Raises:
            LineError: the other side does not speak this protocol, or has another token.
        """
        chunk = self._socket.recv(65536)
        self.closed = not chunk
        self._in += chunk
        messages = []
        while (end := self._in.find(b"\n")) >= 0:
            line = bytes(self._in[:end])
            del self._in[: end + 1]
            message = self._open(line)
            if message is not None:
                messages.append(message)
        if len(self._in) > (LINE_MAX if self._received else LINE_MAX_BEFORE_PROOF):
            raise LineError("it sent a line that is too long")
        return messages

    def greeted(self) -> bool:
        return bool(self._nonce)

    def _open(self, line: bytes) -> Message | None:
        if self._side == "member" and not self._nonce:
            word, _, nonce = line.decode(errors="replace").partition(" ")
            if word != GREETING or len(nonce) != 32:
                raise LineError("the process that answers there is not a scheduler of penstock")
            self._nonce = nonce
            return None
        proof, _, text = line.decode(errors="replace").partition(" ")
        other = "member" if self._side == "scheduler" else "scheduler"
        if not hmac.compare_digest(proof.encode(), self._proof(other, self._received, text).encode()):
            raise LineError("it does not know the job's token (PENSTOCK_JOB_TOKEN)")
        try:
            message = json.loads(text)
        except (ValueError, RecursionError):
            raise LineError("it sent a line that cannot be parsed") from None
        if not isinstance(message, dict):
            raise LineError("it sent a line that cannot be parsed")
        if self._side == "scheduler" and not self._received:
            self._nonces = self._nonce + str(message.get("nonce"))
        self._received += 1
        return message

    def _proof(self, side: str, number: int, text: str) -> str:
        nonces = self._nonces or self._nonce
        return hmac.new(self._token, f"{side} {nonces} {number} {text}".encode(), hashlib.sha256).hexdigest()

    def close(self) -> None:
        self.closed = True
        self._socket.close()
