"""How fast workers are, and whether a worker would only delay a round by taking another portion.

Times are those of a monotonic clock, which the caller reads: this module has none.
"""

from __future__ import annotations

WEIGHT = 0.5  # of the newest portion in a worker's pace
BELOW_ONE = 1 - 1e-9  # so that of two equally fast workers neither leaves a portion to the other


class Pace:
    """The measured speed of one worker, and the portion that it has in work."""

    def __init__(self) -> None:
        self.per_example: float | None = None  # seconds; None: not known yet
        self._since: float | None = None  # since when a portion is in work
        self._examples = 0

    def begin(self, examples: int, now: float) -> None:
        self._since, self._examples = now, examples

    def end(self, now: float) -> None:
        """Measures the portion that was in work, if there was one."""
        if self._since is None:
            return
        measured = (now - self._since) / self._examples
        known = self.per_example
        self.per_example = measured if known is None else WEIGHT * measured + (1 - WEIGHT) * known
        self._since = None

    def drop(self) -> None:
        """Forgets the portion in work."""
        self._since = None

    def free_at(self, now: float) -> float:
        """Returns when the worker probably asks for its next portion.

        One that is late is expected to need as long again as it has needed so far: the time doubles until it comes.
        """
        if self._since is None:
            return now
        expected = self._since + (self.per_example or 0.0) * self._examples
        return expected if expected >= now else now + (now - self._since)

    def count_until(self, end: float, examples: int, now: float) -> int:
        """Returns how many more portions of `examples` the worker can finish until `end`."""
        if self.per_example is None:
            return 0
        left = end - self.free_at(now)
        if left < 0:
            return 0
        each = self.per_example * examples
        return 1 << 30 if each <= 0 else int(left / each * BELOW_ONE)

    def end_of(self, examples: int, now: float) -> float:
        """Returns when the worker would finish a portion that it begins now."""
        return now + (self.per_example or 0.0) * examples
