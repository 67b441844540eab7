"""The portions of the rounds that are open: free, in work, worked, or done.

free      nobody has it; its owner takes from the front of its batch, helpers from the back
in work   a worker has it
worked    its worker has finished with it, but would take its result along if it died
done      its result counts
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from penstock._src.work.portions import Portion, Portions


class Round:
    def __init__(self, portions: Portions, number: int) -> None:
        self.number = number
        self.front = [0] * portions.workers  # by owner: the free portions are those from front to back
        self.back = [portions.count(number, owner) for owner in range(portions.workers)]
        self.returned: list[Portion] = []  # of workers that have died
        self.all_free = self.unworked = self.undone = sum(self.back)

    def free(self, owner: int) -> int:
        """Returns the number of free portions of a worker's batch."""
        return self.back[owner] - self.front[owner]

    def take_first(self, owner: int) -> Portion:
        self.front[owner] += 1
        self.all_free -= 1
        return self.number, owner, self.front[owner] - 1

    def take_last(self, owner: int) -> Portion:
        self.back[owner] -= 1
        self.all_free -= 1
        return self.number, owner, self.back[owner]

    def take_returned(self) -> Portion:
        self.all_free -= 1
        return self.returned.pop(0)

    def give_back(self, portion: Portion) -> None:
        self.all_free += 1
        self.returned.append(portion)

    def release(self, owner: int) -> None:
        """Makes the free portions of an owner everybody's."""
        while self.free(owner):
            self.give_back(self.take_first(owner))


class OpenRounds:
    """The rounds that somebody has begun and that are not done."""

    def __init__(self, portions: Portions) -> None:
        self._portions = portions
        self._open: dict[int, Round] = {}
        self._next = 0  # the first round that nobody has begun
        self.released: set[int] = set()  # owners whose portions are everybody's

    def skip_to(self, round: int) -> None:
        """Begins no round before `round` any more."""
        self._next = max(self._next, round)

    def begin(self, round: int) -> None:
        """Opens all rounds up to `round` that were not begun."""
        while self._next <= round:
            opened = Round(self._portions, self._next)
            for owner in self.released:
                opened.release(owner)
            self._open[self._next] = opened
            self._next += 1

    def mark_taken(self, held: set[Portion], first: int) -> None:
        """Of rounds that were just begun, `held` is in work or worked. What is not, is done in rounds before `first`,
        and free in the others."""
        for round in list(self._open.values()):
            if round.number >= first and not any(portion[0] == round.number for portion in held):
                continue
            for owner in range(self._portions.workers):
                round.release(owner)
            free, round.returned = round.returned, []
            round.all_free = 0
            for portion in free:
                if portion in held:
                    continue
                if round.number < first:
                    self.note_worked(portion)
                    self.note_done(portion)
                else:
                    round.give_back(portion)

    def release(self, owner: int) -> None:
        self.released.add(owner)
        for round in self._open.values():
            round.release(owner)

    def get(self, round: int) -> Round | None:
        """Returns the round; None if it is done."""
        return self._open.get(round)

    def oldest(self) -> int:
        """Returns the number of the first round that is not done."""
        return min(self._open, default=self._next)

    def until(self, end: int) -> Iterator[Round]:
        """Yields the open rounds before round `end`, the oldest first."""
        return (self._open[number] for number in sorted(self._open) if number < end)

    def note_worked(self, portion: Portion) -> None:
        self._open[portion[0]].unworked -= 1

    def note_done(self, portion: Portion) -> None:
        round = self._open[portion[0]]
        round.undone -= 1
        if round.undone == 0:
            del self._open[round.number]

    def give_back(self, portion: Portion, worked: bool) -> None:
        """Makes a portion free again."""
        round = self._open[portion[0]]
        round.unworked += worked
        round.give_back(portion)
