"""Random decisions by seed, the same under every version of Python."""

import random


class Dice:
    """Draws only from random.random(), whose numbers do not depend on the version of Python."""

    def __init__(self, seed):
        self._random = random.Random(seed)

    def chance(self, share):
        return self._random.random() < share

    def between(self, least, most):
        """An integer between both bounds, inclusive."""
        return least + int(self._random.random() * (most - least + 1))

    def number(self, least, most, digits=3):
        return round(least + self._random.random() * (most - least), digits)

    def pick(self, choices):
        return choices[int(self._random.random() * len(choices))]

    def some(self, choices, least, most):
        """Between `least` and `most` elements without repetition, in random order."""
        left, chosen = list(choices), []
        for _ in range(min(self.between(least, most), len(left))):
            chosen.append(left.pop(int(self._random.random() * len(left))))
        return chosen
