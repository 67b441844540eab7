"""Who works on which examples: the decisions of penstock.work, as a state machine without clock and connection.

    board = Board(portions, staleness=0, helpers=None, keeps=False)
    board.begin(rank, epoch=0, first=0)
    board.take(rank, round=0, now)          # the worker has finished what it had, and asks for more
    board.answers(now)                      # [(rank, a portion)], [(rank, None)]: there is no more; others wait
    board.end(rank, epoch=0)
    board.lose(rank)                        # its process has ended

With staleness 0 workers go through rounds together: a worker takes the portions of its own batch, then those of others.
What it has worked on is done when it begins the next round, because it has passed its result on in between. Otherwise
each portion is done when its worker asks for the next one. A worker may then be `staleness` rounds ahead of the oldest
round that is not done (None: any number), and helps in that one instead of going further.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from penstock._src.work.pace import Pace
from penstock._src.work.rounds import OpenRounds

if TYPE_CHECKING:
    from penstock._src.work.portions import Portion, Portions
    from penstock._src.work.record import Record
    from penstock._src.work.rounds import Round


@dataclasses.dataclass
class _Worker:
    rank: int
    epoch: int = -1
    round: int = 0  # in which it takes portions
    there: bool = False  # it has a process, which has not ended the epoch
    gone: bool = False  # its last process has ended
    asks: bool = False  # it waits for an answer
    over: bool = True  # no more portions come to it in this round
    taken: Portion | None = None
    worked: list[tuple[int, Portion]] = dataclasses.field(default_factory=list)  # not done; with the round of the work
    pace: Pace = dataclasses.field(default_factory=Pace)


class Board:
    """Decides who gets which portion.

    staleness  how many rounds a worker may be ahead; None: any number
    helpers    how many workers may help each one: those with the next numbers; None: all
    keeps      what a worker had when it died waits for its next process, which continues; else others do it at once
    """

    def __init__(self, portions: Portions, staleness: int | None, helpers: int | None, keeps: bool) -> None:
        self.portions, self._staleness, self._helpers, self._keeps = portions, staleness, helpers, keeps
        self._rounds = OpenRounds(portions)
        self._workers = [_Worker(rank) for rank in range(portions.workers)]

    def begin(self, rank: int, epoch: int, first: int) -> None:
        """A worker begins an epoch at round `first` of it: a new process, or one that has ended the epoch before."""
        worker, round = self._workers[rank], epoch * self.portions.rounds + first
        self._settle(worker, round)
        worker.epoch, worker.round, worker.there, worker.asks, worker.over = epoch, round, True, False, True
        worker.gone = False
        self._rounds.released.discard(rank)
        self._rounds.skip_to(round)

    def take(self, rank: int, round: int, now: float) -> None:
        """A worker has finished with its portion and asks for another; `round`: that of its epoch in which it is."""
        worker = self._workers[rank]
        worker.pace.end(now)
        if worker.taken is not None:
            self._rounds.note_worked(worker.taken)
            worker.worked.append((worker.round, worker.taken))
            worker.taken = None
        if self._staleness == 0:
            worker.round = worker.epoch * self.portions.rounds + min(round, self.portions.rounds - 1)
        self._finish(worker, worker.round if self._staleness == 0 else None)
        worker.asks, worker.over = True, False

    def end(self, rank: int, epoch: int) -> None:
        """A worker has passed on the results of all of the epoch."""
        worker = self._workers[rank]
        if worker.epoch == epoch:
            self._finish(worker, None)
            worker.there = worker.asks = False

    def lose(self, rank: int) -> None:
        """The process of a worker has ended."""
        worker = self._workers[rank]
        worker.there, worker.asks, worker.gone = False, False, True
        worker.pace = Pace()
        if self._keeps:
            return
        self._give_back(worker)
        self._rounds.release(rank)

    def resume(self, records: dict[int, Record], first: int) -> None:
        """Goes on with what the other workers know, in place of a board that was lost with worker 0, which begins again
        at round `first`. Call it before all else, with staleness 0.

        In a round before that one, worker 0 had done what no other has: it leaves a round only when all of it is
        worked. In later ones, what it had is free again.
        """
        held = {portion for record in records.values() for portion in record.portions()}
        numbers = [first, *(record.round for record in records.values() if record.there)]
        self._rounds.skip_to(min([*numbers, *(portion[0] for portion in held)]))
        self._rounds.begin(max([*numbers, *(portion[0] for portion in held)]))
        self._rounds.mark_taken(held, first)
        for rank, record in records.items():
            worker, done = self._workers[rank], set(record.passed_on())
            worker.epoch, worker.round, worker.there, worker.over = (
                record.epoch,
                record.round,
                record.there,
                record.over,
            )
            worker.taken = record.taken
            for round, portion in record.worked:
                self._rounds.note_worked(portion)
                if portion in done:
                    self._rounds.note_done(portion)
                else:
                    worker.worked.append((round, portion))

    def answers(self, now: float) -> list[tuple[int, Portion | None]]:
        """Returns the answers that can be given now. Those who get none wait: ask again when something has changed, and
        after some time."""
        given: list[tuple[int, Portion | None]] = []
        for worker in self._workers:
            if not worker.asks:
                continue
            portion = self._choose(worker, now)
            if portion is not None:
                worker.taken = portion
                worker.pace.begin(self.portions.examples(portion), now)
            elif self._is_over(worker):
                worker.over = True
            else:
                continue
            worker.asks = False
            given.append((worker.rank, portion))
        return given

    def waits(self) -> bool:
        """Returns whether a worker waits for an answer."""
        return any(worker.asks for worker in self._workers)

    def holders(self) -> list[int]:
        """Returns the workers that have portions in work."""
        return [worker.rank for worker in self._workers if worker.taken is not None]

    def is_there(self, rank: int) -> bool:
        """Returns whether the worker has a process that is in an epoch."""
        return self._workers[rank].there

    def epoch_of(self, rank: int) -> int:
        return self._workers[rank].epoch

    def behind(self, epoch: int) -> list[int]:
        """Returns the workers that have not ended epoch `epoch`, except those that are gone."""
        return [
            one.rank
            for one in self._workers
            if not one.gone and (one.epoch < epoch or (one.epoch == epoch and one.there))
        ]

    def _settle(self, worker: _Worker, round: int) -> None:
        """What an earlier process of the worker did in rounds before `round` is done; the rest is free."""
        worker.pace.drop()
        self._finish(worker, round)
        self._give_back(worker)

    def _finish(self, worker: _Worker, before: int | None) -> None:
        """What the worker has worked on is done, or only what it did in rounds before `before`."""
        for one in [one for one in worker.worked if before is None or one[0] < before]:
            worker.worked.remove(one)
            self._rounds.note_done(one[1])

    def _give_back(self, worker: _Worker) -> None:
        for _, portion in worker.worked:
            self._rounds.give_back(portion, worked=True)
        worker.worked.clear()
        if worker.taken is not None:
            self._rounds.give_back(worker.taken, worked=False)
            worker.taken = None

    def _may_help(self, worker: int, owner: int) -> bool:
        return self._helpers is None or (worker - owner) % self.portions.workers <= self._helpers

    def _choose(self, worker: _Worker, now: float) -> Portion | None:
        """Returns the portion that the worker takes now, or None."""
        end = (worker.epoch + 1) * self.portions.rounds
        for round in self._rounds.until(end if self._staleness != 0 else worker.round + 1):
            if round.returned:
                return round.take_returned()
        if self._staleness == 0:
            self._rounds.begin(worker.round)
            here = self._rounds.get(worker.round)
            return None if here is None else self._choose_in(here, worker, now)
        return self._next_of_own(worker, end) or self._help(worker, end)

    def _choose_in(self, round: Round, worker: _Worker, now: float) -> Portion | None:
        """Returns a portion of the round in which all workers are."""
        if not round.all_free:
            return None
        owner = worker.rank if round.free(worker.rank) else self._slowest(round, worker)
        if owner is None or self._is_late(round, worker, owner, now):
            return None
        return round.take_first(owner) if owner == worker.rank else round.take_last(owner)

    def _slowest(self, round: Round, worker: _Worker) -> int | None:
        """Returns the owner that would need most time for what is left of its batch, of those that the worker helps."""
        known = [other.pace.per_example for other in self._workers if other.pace.per_example is not None]
        usual = sum(known) / len(known) if known else 1.0

        def left(owner: int) -> float:
            pace = self._workers[owner].pace.per_example
            return round.free(owner) * (usual if pace is None else pace)

        owners = [one for one in range(self.portions.workers) if round.free(one) and self._may_help(worker.rank, one)]
        return max(owners, key=left, default=None)

    def _is_late(self, round: Round, worker: _Worker, owner: int, now: float) -> bool:
        """Returns whether the workers that may take the owner's portions, without this one, finish as many as are free
        in all before this one would finish one."""
        if worker.pace.per_example is None:
            return False
        examples = self.portions.examples((round.number, owner, round.front[owner]))
        end = worker.pace.end_of(examples, now)
        others = (
            other
            for other in self._workers
            if other is not worker and not other.over and other.there and other.round == round.number
        )
        count = 0
        for other in others:
            count += other.pace.count_until(end, examples, now) if self._may_help(other.rank, owner) else 0
            if count >= round.all_free:
                return True
        return False

    def _next_of_own(self, worker: _Worker, end: int) -> Portion | None:
        """Returns the next portion of the worker's own batches, unless it would be too far ahead."""
        while worker.round < end:
            if self._staleness is not None and worker.round > self._rounds.oldest() + self._staleness:
                return None
            self._rounds.begin(worker.round)
            round = self._rounds.get(worker.round)
            if round is not None and round.free(worker.rank):
                return round.take_first(worker.rank)
            worker.round += 1
        return None

    def _help(self, worker: _Worker, end: int) -> Portion | None:
        """Returns a portion of the oldest round in which the worker may help."""
        for round in self._rounds.until(end):
            owner = self._slowest(round, worker) if round.all_free else None
            if owner is not None:
                return round.take_last(owner)
        return None

    def _is_over(self, worker: _Worker) -> bool:
        """Returns whether no portion can come to the worker any more: in its round, or in its epoch."""
        end = worker.round + 1 if self._staleness == 0 else (worker.epoch + 1) * self.portions.rounds
        if self._staleness != 0 and worker.round < end:
            return False
        kept = self._kept()
        for round in self._rounds.until(end):
            if round.unworked > kept.get(round.number, 0):
                return False
        return True

    def _kept(self) -> dict[int, int]:
        """Returns by round the number of portions in work that wait for the next process of a worker."""
        kept: dict[int, int] = {}
        for worker in self._workers if self._keeps else ():
            if worker.taken is not None and not worker.there:
                kept[worker.taken[0]] = kept.get(worker.taken[0], 0) + 1
        return kept
