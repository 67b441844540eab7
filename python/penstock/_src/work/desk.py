"""One Shares object in trainer 0: its board, and what it knows about the processes of the other trainers.

    desk.admit(hello, send)            # -> None, or (error id, why) if the process cannot take part
    desk.hear(rank, request, now)      # a request, which may be a repetition
    desk.deliver(now)                  # sends the answers that can be given now
    desk.disconnect(rank, now)         # its connection has ended: perhaps it connects again
    desk.look(now)                     # notices who is gone

In a trainer 0 that was started again, the others tell in their hellos who has which portions. Until all of them have
come, or have had time to, nothing is heard:

    while desk.awaits(now): ...        # admit
    desk.hear(0, begin, now)           # then the board goes on from their records

`send` takes a message. The caller holds a lock around each call.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from penstock._src.base import log
from penstock._src.work.messages import answer_message, waits_message
from penstock._src.work.process import is_gone
from penstock._src.work.record import Record

if TYPE_CHECKING:
    from collections.abc import Callable

    from penstock._src.launch.channel import Message
    from penstock._src.work.board import Board
    from penstock._src.work.messages import Hello, Request

    Send = Callable[[Message], None]


REPORT_EVERY_S = 5.0  # to who waits: for whom
LOOK_EVERY_S = 1.0  # at processes that are connected


@dataclasses.dataclass
class _Peer:
    """The process of a trainer."""

    process: str = ""  # "": none has come
    where: str = ""
    send: Send | None = None  # None: it is not connected
    lost_at: float | None = None
    number: int = 0  # of its last request
    answer: Message | None = None  # to it; None: it waits
    waits_since: float = 0.0
    earlier: set[str] = dataclasses.field(default_factory=set)  # processes that were replaced, or are gone


class Desk:
    """Args:
    board: decides; nothing has happened there yet.
    facts: the settings of the Shares object.
    workers: the number of trainers.
    reconnect_s: how long one may be out of reach.
    resumes: whether this trainer 0 was started again, and goes on from the records of the others.
    """

    def __init__(
        self, board: Board, facts: dict[str, int], workers: int, reconnect_s: float, resumes: bool = False
    ) -> None:
        self.board, self._facts, self._reconnect_s = board, facts, reconnect_s
        self._records: dict[int, Record] | None = {} if resumes else None  # None: the board has begun
        self._since: float | None = None  # when it began to wait for records
        self._peers = [_Peer() for _ in range(workers)]
        self._looked = 0.0
        self._firsts: dict[int, int] = {}  # by epoch, the round of it with which the job has begun

    def admit(self, hello: Hello, send: Send | None) -> tuple[str, str] | None:
        """A process has connected, for the first time or again. Returns why it cannot take part, or None."""
        differs = [
            f"{name} is {mine} in trainer 0 and {hello.facts.get(name)} in trainer {hello.rank}"
            for name, mine in self._facts.items()
            if hello.facts.get(name) != mine
        ]
        if differs:
            return "E-work-settings", f"the trainers have different settings: {', '.join(differs)}"
        peer = self._peers[hello.rank]
        if hello.process in peer.earlier:
            return "E-work-fenced", f"trainer {hello.rank} was taken for dead, or another process has its place"
        if peer.process != hello.process:
            if hello.asked and self._records is None:
                return "E-work-gone", "trainer 0 was started again, and does not know who had which examples"
            wrong = [portion for portion in hello.record.portions() if not self.board.portions.is_portion(portion)]
            if wrong:
                return "E-work-gone", f"trainer {hello.rank} has a portion that does not exist: {wrong[0]}"
            self._replace(peer, hello)
            if self._records is not None:
                self._records[hello.rank] = hello.record
        peer.send, peer.lost_at = send, None
        return None

    def awaits(self, now: float) -> bool:
        """Returns whether this trainer 0 still waits for the records of the others."""
        if self._records is None:
            return False
        self._since = now if self._since is None else self._since
        return len(self._records) < len(self._peers) and now - self._since < self._reconnect_s

    def has_to_resume(self) -> bool:
        return self._records is not None

    def missing(self) -> list[int]:
        """Returns the trainers whose records have not come."""
        return [rank for rank in range(len(self._peers)) if rank not in (self._records or {})]

    def _resume(self, first: int) -> None:
        """Goes on from the records. A trainer that has not come has completed, or is gone."""
        records, self._records = self._records or {}, None
        self.board.resume({rank: record for rank, record in records.items() if record.epoch >= 0}, first)
        for rank, peer in enumerate(self._peers):
            if rank not in records:
                peer.earlier.add(peer.process)
                self.board.lose(rank)

    def _replace(self, peer: _Peer, hello: Hello) -> None:
        if peer.process:
            peer.earlier.add(peer.process)
            self.board.lose(hello.rank)
        peer.process, peer.where, peer.number = hello.process, hello.where, hello.asked
        peer.answer = answer_message(hello.asked, None) if hello.asked else None

    def hear(self, rank: int, request: Request, now: float) -> tuple[str, str] | None:
        """Returns why the request is wrong, or None."""
        peer = self._peers[rank]
        if request.number <= peer.number:
            if peer.answer is not None and request.number == peer.number:
                self._tell(peer, peer.answer)
            return None
        if request.event == "begin":
            if rank == 0 and self._records is not None:
                self._resume(request.epoch * self.board.portions.rounds + request.first)
            if peer.number == 0 and not peer.earlier:
                began = self._firsts.setdefault(request.epoch, request.first)
                if began != request.first:
                    return "E-work-settings", (
                        f"epoch {request.epoch} begins with round {request.first} in trainer {rank}, and with round "
                        f"{began} in another one"
                    )
            self.board.begin(rank, request.epoch, request.first)
        elif not self.board.is_there(rank):
            return "E-work-order", f"trainer {rank} has begun no epoch"
        elif request.event == "end":
            self.board.end(rank, request.epoch)
        else:
            self.board.take(rank, request.round, now)
        peer.number, peer.answer, peer.waits_since = request.number, None, now
        if request.event != "take":
            self._answer(peer, answer_message(request.number, None))
        return None

    def deliver(self, now: float) -> None:
        """Gives the answers that can be given; tells those that have waited for long what they wait for."""
        for rank, portion in self.board.answers(now):
            peer = self._peers[rank]
            self._answer(peer, answer_message(peer.number, portion))
        for peer in self._peers:
            if peer.number and peer.answer is None and now - peer.waits_since >= REPORT_EVERY_S:
                peer.waits_since = now
                self._tell(peer, waits_message(self.board.holders()))

    def disconnect(self, rank: int, send: Send, now: float) -> None:
        peer = self._peers[rank]
        if peer.send is send:
            peer.send, peer.lost_at = None, now

    def look(self, now: float) -> None:
        """Notices which processes are gone. One that has forked may be, although its connection is held open."""
        looks = now - self._looked > LOOK_EVERY_S
        self._looked = now if looks else self._looked
        for rank, peer in enumerate(self._peers):
            lost = peer.lost_at is not None and now - peer.lost_at > self._reconnect_s
            if lost or ((looks or peer.lost_at is not None) and rank > 0 and is_gone(peer.where)):
                self._note_gone(rank, peer)

    def _note_gone(self, rank: int, peer: _Peer) -> None:
        if self.board.is_there(rank):
            log.warning(f"work: trainer {rank} is gone; what it had not finished is for others")
        peer.earlier.add(peer.process)
        peer.process, peer.where, peer.lost_at = "", "", None
        self.board.lose(rank)

    def waits(self) -> bool:
        return self.board.waits() or any(peer.lost_at is not None for peer in self._peers)

    def _answer(self, peer: _Peer, message: Message) -> None:
        peer.answer = message
        self._tell(peer, message)

    @staticmethod
    def _tell(peer: _Peer, message: Message) -> None:
        if peer.send is not None:
            peer.send(message)
