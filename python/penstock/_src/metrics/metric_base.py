"""MetricBase: the base class of metrics, and what they compute with."""

from __future__ import annotations

import copy
import numbers
from typing import TYPE_CHECKING

import numpy

if TYPE_CHECKING:
    from typing import Any

    from penstock._src.ir.typing import Array


def require_number(value: Any, what: str) -> None:
    if not isinstance(value, (numbers.Number, numpy.ndarray)):
        raise ValueError(f"{what} must be a number or an array, not {type(value).__name__}")


def count_of(value: Any, what: str) -> int:
    """Returns a fetched integer."""
    require_number(value, what)
    return int(numpy.sum(value))


def ratio(part: Any, whole: Any) -> float:
    return float(part) / float(whole) if whole else 0.0


class MetricBase:
    """Base class of metrics. The state of a metric is its attributes whose names do not begin with an underscore.

    Args:
        name (str | None): name of the metric; None: the name of the class.

    Example:
        class Count(fluid.metrics.MetricBase):
            def __init__(self, name=None):
                super().__init__(name)
                self.count = 0

            def update(self, preds, labels):
                self.count += len(preds)

            def eval(self):
                return self.count

        metric = Count()
        metric.update(np.zeros(3), np.zeros(3))
        assert metric.eval() == 3
    """

    def __init__(self, name: str | None) -> None:
        self._name = type(self).__name__ if name is None else str(name)

    def __str__(self) -> str:
        return self._name

    def _states(self) -> dict[str, Array | float]:
        return {name: value for name, value in vars(self).items() if not name.startswith("_")}

    def reset(self) -> None:
        """Sets numbers and arrays of the state to zero, and other values to None."""
        for name, value in self._states().items():
            if isinstance(value, (int, float)):
                value = type(value)(0)
            elif isinstance(value, (numpy.ndarray, numpy.generic)):
                value = numpy.zeros_like(value)
            else:
                value = None
            setattr(self, name, value)

    def get_config(self) -> dict[str, dict[str, Array | float] | str]:
        """Returns name and state.

        Returns:
            dict: 'name' and 'states', a copy.
        """
        return {"name": self._name, "states": copy.deepcopy(self._states())}

    def update(self, preds: Any, labels: Any) -> None:
        """Adds a batch.

        Args:
            preds (numpy.ndarray): predictions.
            labels (numpy.ndarray): labels.

        Raises:
            NotImplementedError: the class does not override it.
        """
        raise NotImplementedError(f"{type(self).__name__} has no update(preds, labels)")

    def eval(self) -> Any:
        """Returns the metric over all batches so far.

        Returns:
            float: the metric; some metrics return other values.

        Raises:
            NotImplementedError: the class does not override it.
        """
        raise NotImplementedError(f"{type(self).__name__} has no eval()")
