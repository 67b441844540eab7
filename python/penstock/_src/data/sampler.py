"""DistributedSampler: selects the examples of a data set for each rank."""

from __future__ import annotations

import numbers
from typing import TYPE_CHECKING

import numpy

from penstock._src.base import environment
from penstock._src.data.parts import RULES, part_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any


class DistributedSampler:
    """Yields the indices of one rank's examples.

    By default all ranks have the same number of examples: rank r has the entries r, r + num_ranks, ... of the order.
    With another rule, ranks have neighbouring entries, each example is used once, and the numbers may differ. len() is
    the number of this rank.

    Args:
        size (int): number of examples.
        num_ranks (int | None): number of ranks; None: PADDLE_TRAINERS_NUM, or 1.
        rank (int | None): this rank; None: PADDLE_TRAINER_ID, or 0.
        shuffle (bool): True: each epoch has a new order, the same on all ranks; False: the order is 0, 1, 2, ...
        seed (int): seed of the orders.
        drop_last (bool): used if `size` is not a multiple of num_ranks: False appends examples from the beginning of
            the order, so that every example is used; True skips the last examples.
        rule (str): 'strided', or 'even', 'floor' or 'ceil' as in `fluid.io.part_of`.

    Raises:
        ValueError: `size` is below 0; `rank` is not below `num_ranks`; there is no such rule, or it has no `drop_last`.

    Example:
        sampler = fluid.io.DistributedSampler(5, num_ranks=2, rank=1, shuffle=False)
        assert list(sampler) == [1, 3, 0]
    """

    def __init__(
        self,
        size: int,
        num_ranks: int | None = None,
        rank: int | None = None,
        shuffle: bool = True,
        seed: int = 0,
        drop_last: bool = False,
        rule: str = "strided",
    ) -> None:
        self._size = _count("size", size, 0)
        said = environment.value
        self._ranks = _count("num_ranks", said("PADDLE_TRAINERS_NUM", 1) if num_ranks is None else num_ranks, 1)
        self._rank = _count("rank", said("PADDLE_TRAINER_ID", 0) if rank is None else rank, 0)
        if self._rank >= self._ranks:
            raise ValueError(f"DistributedSampler: rank {self._rank} must be below the number of ranks, {self._ranks}")
        if rule not in ("strided", *RULES):
            raise ValueError(f"DistributedSampler: rule must be one of strided, {', '.join(RULES)}, not {rule!r}")
        if drop_last and rule != "strided":
            raise ValueError(f"DistributedSampler: rule {rule!r} uses each example once; drop_last is of 'strided'")
        self._part = None if rule == "strided" else part_of(self._size, self._ranks, self._rank, rule)
        self._shuffle, self._seed, self._drop_last, self._epoch = bool(shuffle), int(seed), bool(drop_last), 0

    def set_epoch(self, epoch: int) -> None:
        """Selects the order of the next iteration.

        Args:
            epoch (int): the epoch, from 0.
        """
        self._epoch = _count("epoch", epoch, 0)

    def __len__(self) -> int:
        if self._part is not None:
            return len(self._part)
        return self._size // self._ranks if self._drop_last else -(-self._size // self._ranks)

    def __iter__(self) -> Iterator[int]:
        order = numpy.arange(self._size)
        if self._shuffle:
            order = numpy.random.RandomState((self._seed + self._epoch) % 2**32).permutation(self._size)
        if self._part is not None:
            return iter(order[self._part.start : self._part.stop].tolist())
        order = numpy.resize(order, len(self) * self._ranks)  # truncates, or repeats from the beginning
        return iter(order[self._rank :: self._ranks].tolist())


def _count(name: str, value: Any, least: int) -> int:
    whole = int(value) if isinstance(value, (numbers.Integral, str)) and not isinstance(value, bool) else None
    if whole is None or whole < least:
        raise ValueError(f"DistributedSampler: {name} must be an integer of at least {least}, not {value!r}")
    return whole
