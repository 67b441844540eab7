"""Metrics that are accumulated over batches in Python.

accuracy = fluid.metrics.Accuracy()
for batch in batches:
    value, = exe.run(feed=batch, fetch_list=[layers.accuracy(prediction, label)])
    accuracy.update(value, weight=len(batch))
accuracy.eval()
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import numpy

from penstock._src.base.doc_texts import with_texts
from penstock._src.metrics.metric_base import MetricBase, ratio, require_number

if TYPE_CHECKING:
    from typing import Any

    from penstock._src.ir.typing import Array


class CompositeMetric(MetricBase):
    """Computes several metrics of the same predictions.

    Args:
        name (str | None): name of the metric; None: the name of the class.

    Example:
        both = fluid.metrics.CompositeMetric()
        both.add_metric(fluid.metrics.Precision())
        both.add_metric(fluid.metrics.Recall())
        both.update(np.array([[0.9], [0.2]]), np.array([[1], [1]]))
        assert both.eval() == [1.0, 0.5]
    """

    def __init__(self, name: str | None = None) -> None:
        super().__init__(name)
        self._metrics: list[MetricBase] = []

    def add_metric(self, metric: MetricBase) -> None:
        """Adds a metric.

        Args:
            metric (MetricBase): the metric.

        Raises:
            ValueError: `metric` is not a metric.
        """
        if not isinstance(metric, MetricBase):
            raise ValueError(f"add_metric takes a metric, not {type(metric).__name__}")
        self._metrics.append(metric)

    def reset(self) -> None:
        """Resets each metric."""
        for metric in self._metrics:
            metric.reset()

    def update(self, preds: Array, labels: Array) -> None:
        """Adds a batch to each metric.

        Args:
            preds (numpy.ndarray): predictions.
            labels (numpy.ndarray): labels.
        """
        for metric in self._metrics:
            metric.update(preds, labels)

    def eval(self) -> list[float]:
        """Returns the value of each metric.

        Returns:
            list: the values, in the order in which the metrics were added.
        """
        return [metric.eval() for metric in self._metrics]


def _decisions(preds: Array, labels: Array) -> tuple[Array, Array]:
    """Returns whether each rounded prediction and each label is 1, as flat arrays."""
    for value, what in ((preds, "preds"), (labels, "labels")):
        if not isinstance(value, numpy.ndarray):
            raise ValueError(f"{what} must be an array, not {type(value).__name__}")
    preds, labels = numpy.rint(preds).astype("int64").ravel(), labels.astype("int64").ravel()
    if len(preds) != len(labels):
        raise ValueError(f"{len(preds)} predictions, but {len(labels)} labels")
    return preds == 1, labels == 1


_BATCH = {
    "decisions": """Adds a batch.

        Args:
            preds (numpy.ndarray): shape [N, 1], probabilities.
            labels (numpy.ndarray): shape [N, 1], 0 or 1.

        Raises:
            ValueError: an argument is not an array, or they differ in size.
        """
}


class Precision(MetricBase):
    """Computes the precision: the share of positive predictions that are correct.

    Args:
        name (str | None): name of the metric; None: the name of the class.

    Example:
        precision = fluid.metrics.Precision()
        precision.update(np.array([[0.9], [0.8]]), np.array([[1], [0]]))
        assert precision.eval() == 0.5
    """

    def __init__(self, name: str | None = None) -> None:
        super().__init__(name)
        self.tp = self.fp = 0

    @with_texts(_BATCH)
    def update(self, preds: Array, labels: Array) -> None:
        """{decisions}"""
        preds, labels = _decisions(preds, labels)
        self.tp += numpy.count_nonzero(preds & labels)
        self.fp += numpy.count_nonzero(preds & ~labels)

    def eval(self) -> float:
        """Returns the precision over all batches.

        Returns:
            float: the precision; 0 if nothing was predicted to be positive.
        """
        return ratio(self.tp, self.tp + self.fp)


class Recall(MetricBase):
    """Computes the recall: the share of positive examples that are predicted to be positive.

    Args:
        name (str | None): name of the metric; None: the name of the class.

    Example:
        recall = fluid.metrics.Recall()
        recall.update(np.array([[0.9], [0.2]]), np.array([[1], [1]]))
        assert recall.eval() == 0.5
    """

    def __init__(self, name: str | None = None) -> None:
        super().__init__(name)
        self.tp = self.fn = 0

    @with_texts(_BATCH)
    def update(self, preds: Array, labels: Array) -> None:
        """{decisions}"""
        preds, labels = _decisions(preds, labels)
        self.tp += numpy.count_nonzero(labels & preds)
        self.fn += numpy.count_nonzero(labels & ~preds)

    def eval(self) -> float:
        """Returns the recall over all batches.

        Returns:
            float: the recall; 0 if no example is positive.
        """
        return ratio(self.tp, self.tp + self.fn)


class Accuracy(MetricBase):
    """Computes the mean of the accuracies of batches, weighted by their sizes.

    Args:
        name (str | None): name of the metric; None: the name of the class.

    Example:
        accuracy = fluid.metrics.Accuracy()
        accuracy.update(value=0.5, weight=10)
        accuracy.update(value=1.0, weight=30)
        assert accuracy.eval() == 0.875
    """

    def __init__(self, name: str | None = None) -> None:
        super().__init__(name)
        self.value: Any = 0.0  # numbers, or arrays of one
        self.weight: Any = 0.0

    def update(self, value: Array | float, weight: Array | float) -> None:
        """Adds a batch.

        Args:
            value (float | numpy.ndarray): the accuracy of the batch, as returned by layers.accuracy.
            weight (float | numpy.ndarray): the size of the batch.

        Raises:
            ValueError: an argument is not a number, or the weight is negative.
        """
        require_number(value, "value")
        require_number(weight, "weight")
        if numpy.any(numpy.asarray(weight) < 0):
            raise ValueError(f"Accuracy: weight must not be negative, but is {weight}")
        self.value += value * weight
        self.weight += weight

    def eval(self) -> float:
        """Returns the mean over all batches.

        Returns:
            float: the accuracy.

        Raises:
            ValueError: no batch was added.
        """
        if numpy.all(self.weight == 0):
            raise ValueError("Accuracy: no batch has been added; pass the result of layers.accuracy to update()")
        return cast(float, self.value / self.weight)
