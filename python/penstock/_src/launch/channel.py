"""A connection between two launchers: JSON lines, each with a proof that its sender knows the job's token.

    greeting -> answer -> proof   each side draws a nonce and proves by an HMAC over both nonces that it knows the
                                  token; the answering side does so first. The token itself is never sent.
    later lines                   carry an HMAC with a key derived from the token and both nonces, over the direction,
                                  the line's number and the line: no line can be replayed, removed or inserted.

The contents are not secret. Without a token the key is empty; then only the loopback interface protects the exchange.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import secrets
import select
import socket
import threading
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    Message = dict[str, Any]  # JSON


BEAT_S = 2.0
SILENCE_S = 8.0  # with the grace period and the signals after it, the last role ends within 30 s
LINE_MAX_BEFORE_PROOF = 4096
LINE_MAX = 1 << 20


class ChannelError(Exception):
    """The connection cannot be used any more; the message gives the reason."""


class Channel:
    """One connected, non-blocking socket.

    silence_s  after how many seconds without a line the other side is lost; None: never
    """

    def __init__(self, connection: socket.socket, silence_s: float | None = SILENCE_S) -> None:
        connection.setblocking(False)
        self._socket, self._silence_s = connection, silence_s
        self._key: bytes | None = None
        self._side = ""
        self._sent = self._received = 0
        self._in = bytearray()
        self._out = bytearray()
        self._closed: str | None = None  # the reason
        self._lock = threading.RLock()  # protects sending, because a thread may send heartbeats
        self.opened = self._heard = self._spoke = time.monotonic()

    def fileno(self) -> int:
        return self._socket.fileno()

    def protect(self, token: str, side: str, nonces: str) -> None:
        """Adds a proof to every further line. `side` is this side: "hub" or "member"."""
        self._side = side
        self._key = _hmac(token, f"key {nonces}").encode()

    def send(self, message: Message) -> None:
        with self._lock:
            # The name of a file may contain bytes that are not UTF-8, which the other side would refuse.
            line = json.dumps(message, separators=(",", ":"), ensure_ascii=False).encode(errors="replace").decode()
            if self._key is not None:
                line = f"{_mac(self._key, self._side, self._sent, line)} {line}"
                self._sent += 1
            self._out += line.encode() + b"\n"
            self._spoke = time.monotonic()
            self.flush()

    def flush(self) -> None:
        with self._lock:
            try:
                while self._out and self._closed is None:
                    del self._out[: self._socket.send(self._out)]
            except BlockingIOError:
                pass
            except OSError as error:
                self._closed = f"its launcher's connection broke: {error.strerror or error}"

    def is_flushed(self) -> bool:
        return not self._out or self._closed is not None

    def beat(self) -> None:
        """Sends a heartbeat, so that the other side does not consider this launcher lost."""
        if time.monotonic() - self._spoke > BEAT_S:
            self.send({})
        self.flush()

    def receive(self, limit: int | None = None) -> list[Message]:
        """Returns the messages that have arrived, at most `limit`. Raises ChannelError if there are none and the
        connection has ended."""
        self._read()
        messages: list[Message] = []
        while len(messages) != limit and (end := self._in.find(b"\n")) >= 0:
            line = bytes(self._in[:end])
            del self._in[: end + 1]
            messages.append(self._open(line))
        if not messages and len(self._in) > (LINE_MAX if self._key else LINE_MAX_BEFORE_PROOF):
            raise ChannelError("it sent a line that is too long")
        if not messages and self._closed is not None:
            raise ChannelError(self._closed)
        silence = time.monotonic() - self._heard
        if not messages and self._silence_s is not None and silence > self._silence_s:
            raise ChannelError(f"its launcher has not answered for {silence:.0f} s")
        return messages

    def _read(self) -> None:
        try:
            while self._closed is None and len(self._in) <= LINE_MAX:
                chunk = self._socket.recv(65536)
                if not chunk:
                    self._closed = "its launcher closed the connection"
                else:
                    self._heard = time.monotonic()
                    self._in += chunk
        except BlockingIOError:
            pass
        except OSError as error:
            self._closed = f"its launcher's connection broke: {error.strerror or error}"

    def _open(self, line: bytes) -> Message:
        try:
            text = line.decode()
            if self._key is not None:
                mac, _, text = text.partition(" ")
                other = "hub" if self._side == "member" else "member"
                if not hmac.compare_digest(mac.encode(), _mac(self._key, other, self._received, text).encode()):
                    raise ChannelError("it sent a line without a valid proof of the job's token")
                self._received += 1
            message = json.loads(text)
            json.dumps(message, ensure_ascii=False).encode()  # raises UnicodeEncodeError for a lone surrogate
        except (ValueError, RecursionError) as error:
            raise ChannelError("the process that answers there is not a launcher of penstock") from error
        if not isinstance(message, dict):
            raise ChannelError("the process that answers there is not a launcher of penstock")
        return message

    def close(self) -> None:
        with self._lock:
            self._closed = self._closed or "this launcher closed the connection"
            self._socket.close()


def connect(host: str, port: int) -> Channel | None:
    """Returns a channel, or None if no process listens there yet. Raises OSError for permanent errors."""
    try:
        return Channel(socket.create_connection((host, port), timeout=2))
    except (ConnectionRefusedError, TimeoutError, socket.timeout):
        return None


def wait_for(readers: Iterable[Any], writers: Iterable[Any], seconds: float) -> None:
    """Waits until a socket can be read or written, at most `seconds`. Accepts any descriptor, unlike select.select."""
    poll = select.poll()
    for events, sockets in ((select.POLLIN, readers), (select.POLLOUT, writers)):
        for one in sockets:
            poll.register(one, events)
    poll.poll(1000 * seconds)


def new_nonce() -> str:
    return secrets.token_hex(16)


def proof(token: str, side: str, nonces: str, node: int) -> str:
    """Returns the proof that a side knows the token, for the side that drew one of the nonces."""
    return _hmac(token, f"{side} of node {node} {nonces}")


def is_proof(shown: object, expected: str) -> bool:
    return isinstance(shown, str) and hmac.compare_digest(shown.encode(), expected.encode())


def _hmac(token: str, text: str) -> str:
    return hmac.new(token.encode(), text.encode(), hashlib.sha256).hexdigest()


def _mac(key: bytes, side: str, number: int, line: str) -> str:
    return hmac.new(key, f"{side} {number} {line}".encode(), hashlib.sha256).hexdigest()
