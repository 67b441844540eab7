"""WeightedAverage: a mean over batches."""

from __future__ import annotations

import numbers
from typing import TYPE_CHECKING

import numpy

if TYPE_CHECKING:
    from typing import Any

    from penstock._src.ir.typing import Array


class WeightedAverage:
    """A weighted mean over batches; a value may be an array, whose elements are averaged separately.

    Example:
        average = fluid.average.WeightedAverage()
        average.add(value=2.0, weight=1)
        average.add(value=4.0, weight=3)
        assert average.eval() == 3.5
    """

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """Discards all values."""
        self.numerator: Any = None  # a number or an array
        self.denominator: Any = None

    def add(self, value: Array | float, weight: float) -> None:
        """Adds a value.

        Args:
            value (float | numpy.ndarray): the value.
            weight (float): its weight.

        Raises:
            ValueError: an argument is not a number.
        """
        if not isinstance(value, (numbers.Number, numpy.ndarray)):
            raise ValueError(f"WeightedAverage: value must be a number or an array, not {type(value).__name__}")
        if not isinstance(weight, numbers.Number) and numpy.size(weight) != 1:
            raise ValueError(f"WeightedAverage: weight must be one number, not {type(weight).__name__}")
        if self.numerator is None:
            self.numerator, self.denominator = value * weight, weight
        else:
            self.numerator = self.numerator + value * weight
            self.denominator = self.denominator + weight

    def eval(self) -> Any:  # as what was added
        """Returns the mean.

        Returns:
            float | numpy.ndarray: the mean.

        Raises:
            ValueError: nothing was added, or the weights sum to 0.
        """
        if self.numerator is None:
            raise ValueError("WeightedAverage: nothing has been added")
        if self.denominator == 0:
            raise ValueError("WeightedAverage: the weights add up to 0")
        return self.numerator / self.denominator
