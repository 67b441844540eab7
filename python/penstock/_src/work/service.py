"""The service of trainer 0: it listens for the other trainers, and keeps a desk for each Shares object.

    service = the_service(address, token, workers)     # one for the process
    service.open(shares, desk)
    answer = service.ask(shares, request)              # of trainer 0 itself

Each connection begins as one between launchers does: both sides prove that they know the job's token (channel.py).
"""

from __future__ import annotations

import atexit
import contextlib
import os
import socket
import sys
import threading
import time
from typing import TYPE_CHECKING

from penstock._penstock import PeerError
from penstock._src.base import log
from penstock._src.base.errors import error_with_id, program_error
from penstock._src.launch.channel import Channel, ChannelError, is_proof, new_nonce, proof, wait_for
from penstock._src.work.messages import Hello, read_hello, read_request
from penstock._src.work.process import this_process

if TYPE_CHECKING:
    from collections.abc import Callable

    from penstock._src.launch.channel import Message
    from penstock._src.work.desk import Desk
    from penstock._src.work.messages import Request

    Note = Callable[[Callable[[], list[int]]], None]  # is told from time to time for whom a request waits


HELLO_S = 5.0  # time within which a connection must prove that it knows the token
PENDING_MAX = 32
REPORT_AFTER_S = 10.0
LOOK_S = 0.2
LOOK_WAITING_S = 0.005  # while a trainer waits: whoever is late changes what the others get


class _Connection:
    """A connection of another trainer."""

    def __init__(self, connection: socket.socket) -> None:
        self.channel = Channel(connection, silence_s=None)
        self.nonce = new_nonce()
        self.proved = -1  # the trainer that has proved that it knows the token
        self.hello: Hello | None = None
        self.admitted = False

    def send(self, message: Message) -> None:
        self.channel.send(message)

    def refuse(self, id: str, why: str) -> None:
        self.send({"event": "refused", "id": id, "why": why})


class Service:
    def __init__(self, address: str, token: str, workers: int) -> None:
        self._token, self._workers = token, workers
        self._desks: dict[int, Desk] = {}
        self._connections: list[_Connection] = []
        self._changed = threading.Condition()
        self._answers: dict[int, Message] = {}  # to this process
        self._listener = None if workers == 1 else _listen(address)
        self.process = os.getpid()
        self._closing = False
        if self._listener is not None:
            threading.Thread(target=self._run, name="penstock.work", daemon=True).start()

    def open(self, shares: int, desk: Desk, facts: dict[str, int]) -> None:
        """Adds the desk of a Shares object of this process, which takes part as trainer 0."""
        with self._changed:
            own = Hello(0, shares, facts, "trainer 0", this_process())
            desk.admit(own, lambda message: self._note_own(shares, message))
            self._desks[shares] = desk

    def _note_own(self, shares: int, message: Message) -> None:
        if message["event"] == "answer":
            self._answers[shares] = message

    def ask(self, shares: int, request: Request, note: Note) -> Message:
        """Returns the answer to a request of this process. `note` is called with the trainers that it waits for."""
        with self._changed:
            desk = self._desks[shares]
            while desk.awaits(time.monotonic()):
                self._changed.wait(LOOK_WAITING_S)
                note(desk.missing)
            self._answers.pop(shares, None)
            wrong = desk.hear(0, request, time.monotonic())
            if wrong is not None:
                raise program_error(wrong[0], f"work: {wrong[1]}")
            while True:
                desk.deliver(time.monotonic())
                if shares in self._answers:
                    return self._answers.pop(shares)
                self._changed.wait(LOOK_WAITING_S)
                note(desk.board.holders)

    def _run(self) -> None:
        while not self._closing:
            with self._changed:
                waits = any(desk.waits() for desk in self._desks.values())
                channels = [connection.channel for connection in self._connections if not self._holds(connection)]
            listeners = [self._listener] if len(channels) < PENDING_MAX + self._workers else []
            wait_for([*listeners, *channels], [], LOOK_WAITING_S if waits else LOOK_S)
            with self._changed:
                self._accept()
                now = time.monotonic()
                for connection in list(self._connections):
                    self._serve(connection, now)
                for desk in self._desks.values():
                    desk.look(now)
                    desk.deliver(now)
                self._changed.notify_all()

    def _accept(self) -> None:
        while self._listener is not None and len(self._connections) < PENDING_MAX + self._workers:
            try:
                accepted, _ = self._listener.accept()
            except OSError:
                return
            keep_alive(accepted)
            connection = _Connection(accepted)
            connection.send({"penstock_work": 1, "nonce": connection.nonce})
            self._connections.append(connection)

    def _serve(self, connection: _Connection, now: float) -> None:
        """Serves what has arrived. An error on a connection is its end, and nothing else's."""
        try:
            connection.channel.flush()
            if connection.proved < 0 and now - connection.channel.opened > HELLO_S:
                raise ChannelError("it has proved nothing")
            if connection.hello is not None and not connection.admitted:
                self._admit(connection)
            while not self._holds(connection) and (messages := connection.channel.receive(limit=1)):
                self._take(connection, messages[0], now)
        except Exception as error:
            self._drop(connection, error, now)

    def _holds(self, connection: _Connection) -> bool:
        """Returns whether the trainer's requests must wait: trainer 0 has not begun again yet."""
        hello = connection.hello
        return hello is not None and connection.admitted and self._desks[hello.shares].has_to_resume()

    def _take(self, connection: _Connection, message: Message, now: float) -> None:
        if connection.proved < 0:
            self._prove(connection, message)
        elif connection.hello is None:
            connection.hello = read_hello(message, self._workers)
            if connection.hello.rank != connection.proved:
                raise ChannelError("it is not the trainer that it has said")
            self._admit(connection)
        elif connection.admitted:
            desk = self._desks[connection.hello.shares]
            wrong = desk.hear(connection.hello.rank, read_request(message), now)
            if wrong is not None:
                connection.refuse(*wrong)
            desk.deliver(now)
        else:
            raise ChannelError("it asks before it is welcome")

    def _prove(self, connection: _Connection, message: Message) -> None:
        rank, theirs = message.get("rank"), message.get("nonce")
        if type(rank) is not int or not isinstance(theirs, str):
            raise ChannelError("it is no trainer")
        nonces = f"{connection.nonce} {theirs}"
        if not is_proof(message.get("proof"), proof(self._token, "member", nonces, rank)):
            connection.refuse("E-work-token", "it has another token than trainer 0")
            raise ChannelError("it does not know the job's token")
        connection.send({"proof": proof(self._token, "hub", nonces, rank)})
        connection.channel.protect(self._token, "hub", nonces)
        connection.proved = rank

    def _admit(self, connection: _Connection) -> None:
        """Welcomes a trainer; not before this process has the Shares object that it names."""
        hello = connection.hello
        if hello is None or hello.shares not in self._desks:
            return
        refused = self._desks[hello.shares].admit(hello, connection.send)
        if refused is not None:
            connection.refuse(*refused)
            connection.hello = None
            return
        connection.admitted = True
        connection.send({"event": "welcome"})

    def _drop(self, connection: _Connection, error: Exception, now: float) -> None:
        connection.channel.close()
        self._connections.remove(connection)
        if not isinstance(error, (ChannelError, OSError)):
            log.warning(f"work: a connection of a trainer cannot be served: {error!r}")
        if connection.admitted and connection.hello is not None:
            self._desks[connection.hello.shares].disconnect(connection.hello.rank, connection.send, now)

    def wait_for_others(self) -> None:
        """Waits until the other trainers have ended the epochs that this process has ended, or are gone. Without this
        process, they could not."""
        began, after = time.monotonic(), REPORT_AFTER_S
        with self._changed:
            for desk in self._desks.values():
                while not desk.board.is_there(0) and (behind := desk.board.behind(desk.board.epoch_of(0))):
                    self._changed.wait(LOOK_S)
                    if time.monotonic() - began >= after:
                        names = ", ".join(f"trainer {rank}" for rank in behind)
                        log.info(f"waiting {after:.0f} s, at the end of this process, for {names} to end the epoch")
                        after *= 2

    def close(self) -> None:
        """Ends all connections, at once."""
        self._closing = True
        with self._changed, contextlib.suppress(OSError):
            for connection in self._connections:
                connection.channel.close()
            if self._listener is not None:
                self._listener.close()


def keep_alive(connection: socket.socket) -> None:
    """Lets the kernel notice a host that is gone, and sends short messages at once."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, 10)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, 5)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)


def _listen(address: str) -> socket.socket:
    host, _, port = address.rpartition(":")
    try:
        family, kind, _, _, where = socket.getaddrinfo(host.strip("[]"), int(port), type=socket.SOCK_STREAM)[0]
        listener = socket.socket(family, kind)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(where)
        listener.listen(PENDING_MAX)
        listener.setblocking(False)
        return listener
    except (OSError, OverflowError, ValueError) as error:
        why = getattr(error, "strerror", None) or error
        raise error_with_id(
            PeerError, "E-work-address", f"work: trainer 0 cannot listen on {address} for the others: {why}"
        ) from error


_service: Service | None = None


def the_service(address: str, token: str, workers: int) -> Service:
    """Returns the service of this process, which begins to listen at the first call."""
    global _service
    if _service is None or _service.process != os.getpid():
        _service = Service(address, token, workers)
        atexit.register(_end, _service)
    return _service


def _end(service: Service) -> None:
    failed = getattr(sys, "last_value", None) is not None  # an exception ends this process
    if service.process == os.getpid() and not failed:
        service.wait_for_others()
