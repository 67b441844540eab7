"""Learning rates that depend on the number of the update, as MXNet's lr_scheduler computes them."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from penstock._src.base.doc_texts import with_texts

if TYPE_CHECKING:
    from collections.abc import Sequence

_WARMUP = {
    "warmup_steps": "warmup_steps (int): while the number of the update is below it, the rate is that of the warmup.",
    "warmup_begin_lr": "warmup_begin_lr (float): the rate of the warmup at update 0.",
    "warmup_mode": "warmup_mode (str): 'linear': the warmup's rate grows to base_lr; 'constant': it stays "
    "warmup_begin_lr.",
}


@with_texts(_WARMUP)
class LRScheduler:
    """What all schedules have: a rate for the first updates, and a warmup before the schedule proper.

    Args:
        base_lr (float): the rate at the beginning of the schedule.

    Raises:
        ValueError: warmup_steps is negative, warmup_begin_lr is above base_lr, or there is no such mode.

    Example:
        schedule = penstock.kv.lr_scheduler.FactorScheduler(step=10, factor=0.5, base_lr=0.1)
        assert schedule(10) == 0.1 and schedule(11) == 0.05
    """

    type = ""  # what C++ calls the schedule

    def __init__(
        self, base_lr: float = 0.01, warmup_steps: int = 0, warmup_begin_lr: float = 0, warmup_mode: str = "linear"
    ) -> None:
        if warmup_steps < 0 or warmup_steps != int(warmup_steps):
            raise ValueError(f"LRScheduler: warmup_steps={warmup_steps} is not a whole number from 0")
        if warmup_begin_lr > base_lr:
            raise ValueError(f"LRScheduler: warmup_begin_lr={warmup_begin_lr} is above base_lr={base_lr}")
        if warmup_mode not in ("linear", "constant"):
            raise ValueError(f"LRScheduler: warmup_mode={warmup_mode!r}; there are 'linear' and 'constant'")
        self.base_lr = base_lr
        self.warmup_steps = warmup_steps
        self.warmup_begin_lr = warmup_begin_lr
        self.warmup_mode = warmup_mode

    def numbers(self) -> dict[str, float]:
        """Returns the arguments of the schedule that are numbers.

        Returns:
            dict[str, float]: by the names of the arguments.
        """
        return {name: float(one) for name, one in vars(self).items() if isinstance(one, (int, float))}

    def __call__(self, num_update: int) -> float:
        """Returns the rate of an update.

        Args:
            num_update (int): its number: the largest count of updates that a key has, from 1.

        Returns:
            float: the rate.
        """
        if num_update >= self.warmup_steps:
            return self._rate(num_update)
        if self.warmup_mode == "constant":
            return self.warmup_begin_lr
        return self.warmup_begin_lr + (self.base_lr - self.warmup_begin_lr) * num_update / self.warmup_steps

    def _rate(self, num_update: int) -> float:
        raise NotImplementedError


@with_texts(_WARMUP)
class FactorScheduler(LRScheduler):
    """Multiplies the rate by a factor after each `step` updates.

    Args:
        step (int): after how many updates; at least 1.
        factor (float): by what; at most 1.
        stop_factor_lr (float): the rate does not fall below it.
        base_lr (float): the rate of the first `step` updates.

    Raises:
        ValueError: step or factor is out of range.

    Example:
        schedule = penstock.kv.lr_scheduler.FactorScheduler(step=2, factor=0.5, base_lr=1.0)
        assert [schedule(n) for n in (1, 2, 3, 5)] == [1.0, 1.0, 0.5, 0.25]
    """

    type = "factor"

    def __init__(
        self,
        step: int,
        factor: float = 1,
        stop_factor_lr: float = 1e-8,
        base_lr: float = 0.01,
        warmup_steps: int = 0,
        warmup_begin_lr: float = 0,
        warmup_mode: str = "linear",
    ) -> None:
        super().__init__(base_lr, warmup_steps, warmup_begin_lr, warmup_mode)
        _check_factor("FactorScheduler", [step], factor)
        self.step = step
        self.factor = factor
        self.stop_factor_lr = stop_factor_lr

    def _rate(self, num_update: int) -> float:
        rate = self.base_lr
        for _ in range(max(0, math.ceil(num_update / self.step) - 1)):
            rate *= self.factor
            if rate < self.stop_factor_lr:
                return self.stop_factor_lr
        return rate


@with_texts(_WARMUP)
class MultiFactorScheduler(LRScheduler):
    """Multiplies the rate by a factor after each of some updates.

    Args:
        step (list[int]): the numbers of these updates, ascending.
        factor (float): by what; at most 1.
        base_lr (float): the rate of the first updates.

    Raises:
        ValueError: the steps do not ascend from 1, or factor is out of range.

    Example:
        schedule = penstock.kv.lr_scheduler.MultiFactorScheduler([2, 5], factor=0.5, base_lr=1.0)
        assert [schedule(n) for n in (2, 3, 6)] == [1.0, 0.5, 0.25]
    """

    type = "multi_factor"

    def __init__(
        self,
        step: Sequence[int],
        factor: float = 1,
        base_lr: float = 0.01,
        warmup_steps: int = 0,
        warmup_begin_lr: float = 0,
        warmup_mode: str = "linear",
    ) -> None:
        super().__init__(base_lr, warmup_steps, warmup_begin_lr, warmup_mode)
        _check_factor("MultiFactorScheduler", list(step), factor)
        self.step = list(step)
        self.factor = factor

    def _rate(self, num_update: int) -> float:
        rate = self.base_lr
        for one in self.step:
            if num_update > one:
                rate *= self.factor
        return rate


class _EndingScheduler(LRScheduler):
    """Goes from base_lr to final_lr, where it is from update max_update on. The kinds differ in the way there."""

    def __init__(
        self,
        max_update: int,
        base_lr: float,
        final_lr: float,
        warmup_steps: int,
        warmup_begin_lr: float,
        warmup_mode: str,
    ) -> None:
        super().__init__(base_lr, warmup_steps, warmup_begin_lr, warmup_mode)
        if max_update < 1 or max_update <= warmup_steps:
            raise ValueError(
                f"{type(self).__name__}: max_update={max_update} is not above 0 and warmup_steps={warmup_steps}"
            )
        self.max_update = max_update
        self.final_lr = final_lr

    def _rate(self, num_update: int) -> float:
        done = (min(num_update, self.max_update) - self.warmup_steps) / (self.max_update - self.warmup_steps)
        return float(self.final_lr + (self.base_lr - self.final_lr) * self._left(done))

    def _left(self, done: float) -> float:
        """Returns the share of the way that is left after the share `done` of the updates."""
        raise NotImplementedError


@with_texts(_WARMUP)
class PolyScheduler(_EndingScheduler):
    """Lowers the rate to final_lr as a power of the updates that are left.

    Args:
        max_update (int): the update at which the rate is final_lr, and stays; at least 1.
        base_lr (float): the rate at the beginning.
        pwr (float): the power.
        final_lr (float): the rate at the end.

    Raises:
        ValueError: max_update is not above warmup_steps.

    Example:
        schedule = penstock.kv.lr_scheduler.PolyScheduler(max_update=10, base_lr=1.0)
        assert schedule(5) == 0.25 and schedule(10) == schedule(99) == 0
    """

    type = "poly"

    def __init__(
        self,
        max_update: int,
        base_lr: float = 0.01,
        pwr: float = 2,
        final_lr: float = 0,
        warmup_steps: int = 0,
        warmup_begin_lr: float = 0,
        warmup_mode: str = "linear",
    ) -> None:
        super().__init__(max_update, base_lr, final_lr, warmup_steps, warmup_begin_lr, warmup_mode)
        self.pwr = pwr

    def _left(self, done: float) -> float:
        return float((1 - done) ** self.pwr)


@with_texts(_WARMUP)
class CosineScheduler(_EndingScheduler):
    """Lowers the rate to final_lr along half a wave of the cosine.

    Args:
        max_update (int): the update at which the rate is final_lr, and stays; at least 1.
        base_lr (float): the rate at the beginning.
        final_lr (float): the rate at the end.

    Raises:
        ValueError: max_update is not above warmup_steps.

    Example:
        schedule = penstock.kv.lr_scheduler.CosineScheduler(max_update=10, base_lr=1.0)
        assert abs(schedule(5) - 0.5) < 1e-12
    """

    type = "cosine"

    def __init__(
        self,
        max_update: int,
        base_lr: float = 0.01,
        final_lr: float = 0,
        warmup_steps: int = 0,
        warmup_begin_lr: float = 0,
        warmup_mode: str = "linear",
    ) -> None:
        super().__init__(max_update, base_lr, final_lr, warmup_steps, warmup_begin_lr, warmup_mode)

    def _left(self, done: float) -> float:
        return (1 + math.cos(math.pi * done)) / 2


def _check_factor(name: str, steps: Sequence[int], factor: float) -> None:
    if not steps or steps[0] < 1 or any(after <= before for before, after in zip(steps, steps[1:])):
        raise ValueError(f"{name}: step={steps if len(steps) != 1 else steps[0]}; steps are numbers from 1, ascending")
    if factor > 1:
        raise ValueError(f"{name}: factor={factor} would raise the rate; it is at most 1")
