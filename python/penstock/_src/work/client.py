"""The connection of a trainer with trainer 0 about the work, which survives a break.

remote = Remote(address, token, hello, portions, reconnect_s, start_s, returns)
answer = remote.ask(request, note)      # sent again after a break
"""

from __future__ import annotations

import dataclasses
import socket
import time
from typing import TYPE_CHECKING

from penstock._penstock import PeerError, ProgramError
from penstock._src.base.errors import error_with_id
from penstock._src.launch.channel import Channel, ChannelError, is_proof, new_nonce, proof, wait_for
from penstock._src.work.messages import hello_message, read_answer, read_waits, request_message
from penstock._src.work.service import keep_alive

if TYPE_CHECKING:
    from penstock._src.launch.channel import Message
    from penstock._src.work.messages import Hello, Request
    from penstock._src.work.portions import Portions
    from penstock._src.work.service import Note


CONNECT_S = 2.0
AGAIN_S = 0.05
POLL_S = 0.2
HANDSHAKE_S = 10.0


class Remote:
    """Args:
    hello: says who this trainer is.
    reconnect_s: how long trainer 0 may be out of reach.
    start_s: how long it may take to come.
    returns: whether it is started again if it dies, and learns from the others who has which portions.
    """

    def __init__(
        self,
        address: str,
        token: str,
        hello: Hello,
        portions: Portions,
        reconnect_s: float,
        start_s: float,
        returns: bool,
    ) -> None:
        self._address, self._token, self._hello, self._portions = address, token, hello, portions
        self._reconnect_s, self._returns = reconnect_s, returns
        self._channel: Channel | None = None
        self._met = False  # trainer 0 has welcomed this process
        self._holders: list[int] = []
        self._connect(time.monotonic() + start_s, f"has not come within {start_s:.0f} s")

    def ask(self, request: Request, note: Note) -> Message:
        """Returns the answer to a request. `note` is called now and then with a function that returns the trainers for
        which it waits."""
        self._holders = []
        sent = False
        while True:
            if self._channel is None:
                broke = time.monotonic()
                self._connect(broke + self._reconnect_s, f"has been out of reach for {self._reconnect_s:.0f} s")
                sent = False
            try:
                if not sent:
                    self._open().send(request_message(request))
                    sent = True
                message = self._next(time.monotonic() + POLL_S)
            except ChannelError:
                self._close()
                continue
            note(lambda: self._holders)
            if message is None:
                continue
            if message.get("event") == "waits":
                self._holders = read_waits(message)
            elif message.get("event") == "answer" and message.get("number") == request.number:
                self._hello = dataclasses.replace(self._hello, asked=request.number)
                self._hello.record.note(request, read_answer(message, self._portions)[1], self._portions.rounds)
                return message

    def _open(self) -> Channel:
        if self._channel is None:
            raise ChannelError("its connection has ended")
        return self._channel

    def _connect(self, deadline: float, otherwise: str) -> None:
        """Connects, proves that it knows the token, and says hello. Raises PeerError after the deadline."""
        while True:
            try:
                self._try_to_connect(deadline)
                self._met = True
                return
            except ChannelError as error:
                self._close()
                # It listens as long as it lives.
                ended = self._met and not self._returns and isinstance(error.__cause__, ConnectionRefusedError)
                if ended or time.monotonic() > deadline:
                    why = "has ended" if ended else otherwise
                    raise error_with_id(
                        PeerError,
                        "E-work-gone",
                        f"work: trainer 0, which divides the work, {why} ({self._address}: {error})",
                    ) from None
                time.sleep(AGAIN_S)

    def _try_to_connect(self, deadline: float) -> None:
        host, _, port = self._address.rpartition(":")
        try:
            connection = socket.create_connection((host.strip("[]"), int(port)), timeout=CONNECT_S)
            keep_alive(connection)
        except (OSError, ValueError) as error:
            raise ChannelError(getattr(error, "strerror", None) or str(error)) from error
        self._channel = Channel(connection, silence_s=None)
        rank, nonce = self._hello.rank, new_nonce()
        nonces = f"{self._expect('nonce')} {nonce}"
        self._channel.send({"rank": rank, "nonce": nonce, "proof": proof(self._token, "member", nonces, rank)})
        if not is_proof(self._expect("proof"), proof(self._token, "hub", nonces, rank)):
            raise error_with_id(
                PeerError, "E-work-token", f"work: {self._address} has another token, so it is not of this job"
            )
        self._channel.protect(self._token, "member", nonces)
        self._channel.send(hello_message(self._hello))
        while (message := self._next(deadline)) is None or message.get("event") != "welcome":
            if message is None and time.monotonic() > deadline:
                raise ChannelError("trainer 0 has made no such Shares object")

    def _expect(self, field: str) -> str:
        message = self._next(time.monotonic() + HANDSHAKE_S)
        value = None if message is None else message.get(field)
        if not isinstance(value, str):
            raise ChannelError("the process that answers there is not trainer 0 of this job")
        return value

    def _next(self, deadline: float) -> Message | None:
        """Returns the next message, or None if none has come until the deadline."""
        channel = self._open()
        while True:
            try:
                messages = channel.receive(limit=1)
                channel.flush()
            except OSError as error:
                raise ChannelError(str(error)) from error
            if messages:
                return self._checked(messages[0])
            left = deadline - time.monotonic()
            if left <= 0:
                return None
            wait_for([channel], [] if channel.is_flushed() else [channel], min(left, POLL_S))

    def _checked(self, message: Message) -> Message:
        if message.get("event") != "refused":
            return message
        id, why = str(message.get("id")), f"work: {message.get('why')}"
        self._close()
        kind = ProgramError if id in ("E-work-settings", "E-work-order") else PeerError
        raise error_with_id(kind, id, why)

    def _close(self) -> None:
        if self._channel is not None:
            self._channel.close()
            self._channel = None
