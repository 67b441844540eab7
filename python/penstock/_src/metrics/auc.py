"""Auc: the area under the curve of a classifier."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy

from penstock._src.metrics.metric_base import MetricBase, ratio

if TYPE_CHECKING:
    from typing import Any

    from penstock._src.ir.typing import Array


class Auc(MetricBase):
    """Computes the area under the ROC curve, or under the precision-recall curve.

    Args:
        name (str | None): name of the metric; None: the name of the class.
        curve (str): 'ROC' or 'PR'.
        num_thresholds (int): number of thresholds, one less than the buckets in which probabilities are counted.

    Raises:
        ValueError: `curve` has another value.

    Example:
        auc = fluid.metrics.Auc('auc')
        auc.update(np.array([[0.1, 0.9], [0.8, 0.2]]), np.array([[1], [0]]))
        assert auc.eval() == 1.0
    """

    def __init__(self, name: str | None, curve: str = "ROC", num_thresholds: int = 4095) -> None:
        super().__init__(name)
        if curve not in ("ROC", "PR"):
            raise ValueError(f"Auc: curve {curve!r} must be 'ROC' or 'PR'")
        self._curve = curve
        self._num_thresholds = num_thresholds
        self.stat_pos = numpy.zeros(num_thresholds + 1, "int64")
        self.stat_neg = numpy.zeros(num_thresholds + 1, "int64")

    def update(self, preds: Array, labels: Array) -> None:
        """Adds a batch.

        Args:
            preds (numpy.ndarray): shape [N, 2], probabilities of both classes.
            labels (numpy.ndarray): shape [N, 1], 0 or 1.

        Raises:
            ValueError: the shapes are incompatible, or a value is not a probability.
        """
        for value, what in ((preds, "predictions"), (labels, "labels")):
            if not isinstance(value, numpy.ndarray):
                raise ValueError(f"{what} must be an array, not {type(value).__name__}")
        if preds.ndim != 2 or preds.shape[1] != 2 or len(preds) != labels.size:
            raise ValueError(f"preds must be [rows, 2] and labels [rows, 1], not {preds.shape} and {labels.shape}")
        probabilities = preds[:, 1]
        if not numpy.all((probabilities >= 0) & (probabilities <= 1)):
            raise ValueError("preds must be probabilities, in [0, 1]")
        bins = (probabilities * self._num_thresholds).astype("int64")
        positive = labels.ravel() != 0
        numpy.add.at(self.stat_pos, bins[positive], 1)
        numpy.add.at(self.stat_neg, bins[~positive], 1)

    @property
    def _stat_pos(self) -> list[Any]:
        """Returns the counts as a list, under Fluid's name."""
        return list(self.stat_pos)

    @property
    def _stat_neg(self) -> list[Any]:
        return list(self.stat_neg)

    @staticmethod
    def trapezoid_area(x1: Any, x2: Any, y1: Any, y2: Any) -> Any:
        """Returns the area between two points of a curve.

        Args:
            x1 (float): abscissa of the first point.
            x2 (float): abscissa of the second point.
            y1 (float): ordinate of the first point.
            y2 (float): ordinate of the second point.

        Returns:
            float: the area.
        """
        return abs(x1 - x2) * (y1 + y2) / 2.0

    def eval(self) -> float:
        """Returns the area over all batches.

        Returns:
            float: the area; 0 if there are no positive or no negative examples.
        """
        # From the highest threshold down: the numbers of positives and negatives above it.
        positives = numpy.concatenate([[0], numpy.cumsum(self.stat_pos[::-1])])
        negatives = numpy.concatenate([[0], numpy.cumsum(self.stat_neg[::-1])])
        if self._curve == "PR":
            precision = positives[1:] / numpy.maximum(positives[1:] + negatives[1:], 1)
            return ratio(numpy.sum(self.stat_pos[::-1] * precision), positives[-1]) if negatives[-1] else 0.0
        area = numpy.sum(self.trapezoid_area(negatives[1:], negatives[:-1], positives[1:], positives[:-1]))
        return ratio(area, positives[-1] * negatives[-1])
