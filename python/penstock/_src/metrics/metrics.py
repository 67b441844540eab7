"""Metrics that are accumulated over batches in Python.

accuracy = fluid.metrics.Accuracy()
for batch in batches:
    value, = exe.run(feed=batch, fetch_list=[layers.accuracy(prediction, label)])
    accuracy.update(value, weight=len(batch))
accuracy.eval()
"""

import copy
import numbers

import numpy

from penstock._src.base.doc_texts import with_texts

__all__ = ["MetricBase", "CompositeMetric", "Precision", "Recall", "Accuracy", "ChunkEvaluator", "EditDistance", "Auc"]


def _require_number(value, what):
    if not isinstance(value, (numbers.Number, numpy.ndarray)):
        raise ValueError(f"{what} must be a number or an array, not {type(value).__name__}")


def _count(value, what):
    """Returns a fetched integer."""
    _require_number(value, what)
    return int(numpy.sum(value))


def _ratio(part, whole):
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

    def __init__(self, name):
        self._name = type(self).__name__ if name is None else str(name)

    def __str__(self):
        return self._name

    def _states(self):
        return {name: value for name, value in vars(self).items() if not name.startswith("_")}

    def reset(self):
        """Sets numbers and arrays of the state to zero, and other values to None."""
        for name, value in self._states().items():
            if isinstance(value, (int, float)):
                value = type(value)(0)
            elif isinstance(value, (numpy.ndarray, numpy.generic)):
                value = numpy.zeros_like(value)
            else:
                value = None
            setattr(self, name, value)

    def get_config(self):
        """Returns name and state.

        Returns:
            dict: 'name' and 'states', a copy.
        """
        return {"name": self._name, "states": copy.deepcopy(self._states())}

    def update(self, preds, labels):
        """Adds a batch.

        Args:
            preds (numpy.ndarray): predictions.
            labels (numpy.ndarray): labels.

        Raises:
            NotImplementedError: the class does not override it.
        """
        raise NotImplementedError(f"{type(self).__name__} has no update(preds, labels)")

    def eval(self):
        """Returns the metric over all batches so far.

        Returns:
            float: the metric; some metrics return other values.

        Raises:
            NotImplementedError: the class does not override it.
        """
        raise NotImplementedError(f"{type(self).__name__} has no eval()")


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

    def __init__(self, name=None):
        super().__init__(name)
        self._metrics = []

    def add_metric(self, metric):
        """Adds a metric.

        Args:
            metric (MetricBase): the metric.

        Raises:
            ValueError: `metric` is not a metric.
        """
        if not isinstance(metric, MetricBase):
            raise ValueError(f"add_metric takes a metric, not {type(metric).__name__}")
        self._metrics.append(metric)

    def reset(self):
        """Resets each metric."""
        for metric in self._metrics:
            metric.reset()

    def update(self, preds, labels):
        """Adds a batch to each metric.

        Args:
            preds (numpy.ndarray): predictions.
            labels (numpy.ndarray): labels.
        """
        for metric in self._metrics:
            metric.update(preds, labels)

    def eval(self):
        """Returns the value of each metric.

        Returns:
            list: the values, in the order in which the metrics were added.
        """
        return [metric.eval() for metric in self._metrics]


def _decisions(preds, labels):
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

    def __init__(self, name=None):
        super().__init__(name)
        self.tp = self.fp = 0

    @with_texts(_BATCH)
    def update(self, preds, labels):
        """{decisions}"""
        preds, labels = _decisions(preds, labels)
        self.tp += numpy.count_nonzero(preds & labels)
        self.fp += numpy.count_nonzero(preds & ~labels)

    def eval(self):
        """Returns the precision over all batches.

        Returns:
            float: the precision; 0 if nothing was predicted to be positive.
        """
        return _ratio(self.tp, self.tp + self.fp)


class Recall(MetricBase):
    """Computes the recall: the share of positive examples that are predicted to be positive.

    Args:
        name (str | None): name of the metric; None: the name of the class.

    Example:
        recall = fluid.metrics.Recall()
        recall.update(np.array([[0.9], [0.2]]), np.array([[1], [1]]))
        assert recall.eval() == 0.5
    """

    def __init__(self, name=None):
        super().__init__(name)
        self.tp = self.fn = 0

    @with_texts(_BATCH)
    def update(self, preds, labels):
        """{decisions}"""
        preds, labels = _decisions(preds, labels)
        self.tp += numpy.count_nonzero(labels & preds)
        self.fn += numpy.count_nonzero(labels & ~preds)

    def eval(self):
        """Returns the recall over all batches.

        Returns:
            float: the recall; 0 if no example is positive.
        """
        return _ratio(self.tp, self.tp + self.fn)


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

    def __init__(self, name=None):
        super().__init__(name)
        self.value = 0.0
        self.weight = 0.0

    def update(self, value, weight):
        """Adds a batch.

        Args:
            value (float | numpy.ndarray): the accuracy of the batch, as returned by layers.accuracy.
            weight (float | numpy.ndarray): the size of the batch.

        Raises:
            ValueError: an argument is not a number, or the weight is negative.
        """
        _require_number(value, "value")
        _require_number(weight, "weight")
        if numpy.any(numpy.asarray(weight) < 0):
            raise ValueError(f"Accuracy: weight must not be negative, but is {weight}")
        self.value += value * weight
        self.weight += weight

    def eval(self):
        """Returns the mean over all batches.

        Returns:
            float: the accuracy.

        Raises:
            ValueError: no batch was added.
        """
        if numpy.all(self.weight == 0):
            raise ValueError("Accuracy: no batch has been added; pass the result of layers.accuracy to update()")
        return self.value / self.weight


class ChunkEvaluator(MetricBase):
    """Computes precision, recall and F1 score of chunk detection from the counts of layers.chunk_eval.

    Args:
        name (str | None): name of the metric; None: the name of the class.

    Example:
        chunks = fluid.metrics.ChunkEvaluator()
        chunks.update(num_infer_chunks=4, num_label_chunks=2, num_correct_chunks=2)
        assert chunks.eval()[:2] == (0.5, 1.0)
    """

    def __init__(self, name=None):
        super().__init__(name)
        self.num_infer_chunks = 0
        self.num_label_chunks = 0
        self.num_correct_chunks = 0

    def update(self, num_infer_chunks, num_label_chunks, num_correct_chunks):
        """Adds a batch.

        Args:
            num_infer_chunks (int | numpy.ndarray): number of predicted chunks.
            num_label_chunks (int | numpy.ndarray): number of labelled chunks.
            num_correct_chunks (int | numpy.ndarray): number of correctly predicted chunks.
        """
        self.num_infer_chunks += _count(num_infer_chunks, "num_infer_chunks")
        self.num_label_chunks += _count(num_label_chunks, "num_label_chunks")
        self.num_correct_chunks += _count(num_correct_chunks, "num_correct_chunks")

    def eval(self):
        """Returns the metrics over all batches.

        Returns:
            tuple[float, float, float]: precision, recall, F1.
        """
        precision = _ratio(self.num_correct_chunks, self.num_infer_chunks)
        recall = _ratio(self.num_correct_chunks, self.num_label_chunks)
        return precision, recall, _ratio(2 * precision * recall, precision + recall)


class EditDistance(MetricBase):
    """Computes the mean edit distance, and the share of sequences with an error, from layers.edit_distance.

    Args:
        name (str | None): name of the metric; None: the name of the class.

    Example:
        distance = fluid.metrics.EditDistance('distance')
        distance.update(np.array([[0.0], [3.0]]), 2)
        assert distance.eval() == (1.5, 0.5)
    """

    def __init__(self, name):
        super().__init__(name)
        self.total_distance = 0.0
        self.seq_num = 0
        self.instance_error = 0

    def update(self, distances, seq_num):
        """Adds a batch.

        Args:
            distances (numpy.ndarray): the distances, shape [N, 1].
            seq_num (int | numpy.ndarray): the number of sequences, N.

        Raises:
            ValueError: `distances` is not an array.
        """
        if not isinstance(distances, numpy.ndarray):
            raise ValueError(f"EditDistance: distances must be an array, not {type(distances).__name__}")
        count = _count(seq_num, "seq_num")
        self.seq_num += count
        self.instance_error += count - int(numpy.sum(distances == 0))
        self.total_distance += float(numpy.sum(distances))

    def eval(self):
        """Returns the metrics over all batches.

        Returns:
            tuple[float, float]: mean distance, share of sequences whose distance is not 0.

        Raises:
            ValueError: no batch was added.
        """
        if self.seq_num == 0:
            raise ValueError(
                "EditDistance: no batch has been added; pass the results of layers.edit_distance to update()"
            )
        return self.total_distance / self.seq_num, self.instance_error / float(self.seq_num)


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

    def __init__(self, name, curve="ROC", num_thresholds=4095):
        super().__init__(name)
        if curve not in ("ROC", "PR"):
            raise ValueError(f"Auc: curve {curve!r} must be 'ROC' or 'PR'")
        self._curve = curve
        self._num_thresholds = num_thresholds
        self.stat_pos = numpy.zeros(num_thresholds + 1, "int64")
        self.stat_neg = numpy.zeros(num_thresholds + 1, "int64")

    # Fluid's names and types.
    _stat_pos = property(lambda self: self.stat_pos.tolist())
    _stat_neg = property(lambda self: self.stat_neg.tolist())

    def update(self, preds, labels):
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
    def _stat_pos(self):
        """Returns the counts as a list, under Fluid's name."""
        return list(self.stat_pos)

    @property
    def _stat_neg(self):
        return list(self.stat_neg)

    @staticmethod
    def trapezoid_area(x1, x2, y1, y2):
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

    def eval(self):
        """Returns the area over all batches.

        Returns:
            float: the area; 0 if there are no positive or no negative examples.
        """
        # From the highest threshold down: the numbers of positives and negatives above it.
        positives = numpy.concatenate([[0], numpy.cumsum(self.stat_pos[::-1])])
        negatives = numpy.concatenate([[0], numpy.cumsum(self.stat_neg[::-1])])
        if self._curve == "PR":
            precision = positives[1:] / numpy.maximum(positives[1:] + negatives[1:], 1)
            return _ratio(numpy.sum(self.stat_pos[::-1] * precision), positives[-1]) if negatives[-1] else 0.0
        area = numpy.sum(self.trapezoid_area(negatives[1:], negatives[:-1], positives[1:], positives[:-1]))
        return _ratio(area, positives[-1] * negatives[-1])
