"""How the examples of an epoch are divided: into rounds, the rounds among workers, and their batches into portions.

    epochs = Portions(size=1000, batch_size=16, per_batch=4, workers=3)
    epochs.rounds                      # of an epoch
    epochs.count(round=0, owner=2)     # portions of worker 2's batch in round 0
    epochs.bounds((0, 2, 1))           # where portion 1 of that batch lies in the epoch's order: (begin, end)

Rounds are numbered through all epochs: round r of epoch e is e * rounds + r. All of this is a function of the four
numbers, so processes name a portion by three integers: round, owner, number.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import numpy

if TYPE_CHECKING:
    from typing import Any

    Portion = tuple[int, int, int]  # round, owner, number in the owner's batch


@dataclasses.dataclass(frozen=True)
class Portions:
    size: int  # examples of an epoch
    batch_size: int  # of one worker in one round
    per_batch: int  # portions
    workers: int

    @property
    def rounds(self) -> int:
        return -(-self.size // (self.batch_size * self.workers))

    def round_size(self, round: int) -> int:
        """Returns the examples of a round; the last round of an epoch may have fewer than the others."""
        whole = self.batch_size * self.workers
        return min(whole, self.size - round % self.rounds * whole)

    def batch(self, round: int, owner: int) -> tuple[int, int]:
        """Returns where the batch of a worker begins and ends in the epoch's order."""
        first = round % self.rounds * self.batch_size * self.workers
        size = self.round_size(round)
        return first + size * owner // self.workers, first + size * (owner + 1) // self.workers

    def count(self, round: int, owner: int) -> int:
        """Returns the number of portions of a batch, none of which is empty."""
        begin, end = self.batch(round, owner)
        return min(self.per_batch, end - begin)

    def bounds(self, portion: Portion) -> tuple[int, int]:
        """Returns where a portion begins and ends in the epoch's order."""
        round, owner, number = portion
        begin, end = self.batch(round, owner)
        count = self.count(round, owner)
        return begin + (end - begin) * number // count, begin + (end - begin) * (number + 1) // count

    def examples(self, portion: Portion) -> int:
        begin, end = self.bounds(portion)
        return end - begin

    def is_portion(self, portion: Portion) -> bool:
        round, owner, number = portion
        return round >= 0 and 0 <= owner < self.workers and 0 <= number < self.count(round, owner)


def order_of(size: int, shuffle: bool, seed: int, epoch: int) -> Any:
    """Returns the order of an epoch's examples, the same in every process: an array of indices."""
    if not shuffle:
        return numpy.arange(size)
    return numpy.random.RandomState((seed + epoch) % 2**32).permutation(size)
