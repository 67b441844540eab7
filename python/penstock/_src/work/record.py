"""What a trainer knows of its own work: a trainer 0 that was started again learns from it who has which portions.

    record = Record()
    record.note(request, portion, rounds)      # each answer, in order
    record.portions(), record.passed_on()      # of the last two rounds

It follows the rules of Board.take for rounds (staleness 0), where all that matters is of the last two rounds: trainer 0
itself was in the same round, or in the one before.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from penstock._src.work.messages import Request
    from penstock._src.work.portions import Portion


@dataclasses.dataclass
class Record:
    epoch: int = -1
    round: int = 0  # in which it takes portions, numbered through all epochs
    there: bool = False  # it has begun the epoch, and not ended it
    over: bool = True  # no more portions come to it in this round
    taken: Portion | None = None
    worked: list[tuple[int, Portion]] = dataclasses.field(default_factory=list)  # with the round of the work

    def note(self, request: Request, portion: Portion | None, rounds: int) -> None:
        """A request was answered; an epoch has `rounds` rounds."""
        if request.event == "begin":
            self.epoch, self.round = request.epoch, request.epoch * rounds + request.first
            self.there, self.over = True, True
            return
        if self.taken is not None:
            self.worked.append((self.round, self.taken))
        if request.event == "take":
            self.round = self.epoch * rounds + min(request.round, rounds - 1)
        else:
            self.there, self.round = False, (self.epoch + 1) * rounds
        self.taken, self.over = portion, portion is None
        self.worked = [one for one in self.worked if one[0] >= self.round - 1]

    def passed_on(self) -> list[Portion]:
        """Returns the portions whose results count."""
        return [portion for round, portion in self.worked if round < self.round]

    def portions(self) -> list[Portion]:
        return [portion for _, portion in self.worked] + ([] if self.taken is None else [self.taken])
