"""Metrics of sequences: ChunkEvaluator and EditDistance."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy

from penstock._src.metrics.metric_base import MetricBase, count_of, ratio

if TYPE_CHECKING:
    from typing import Any

    from penstock._src.ir.typing import Array


class ChunkEvaluator(MetricBase):
    """Computes precision, recall and F1 score of chunk detection from the counts of layers.chunk_eval.

    Args:
        name (str | None): name of the metric; None: the name of the class.

    Example:
        chunks = fluid.metrics.ChunkEvaluator()
        chunks.update(num_infer_chunks=4, num_label_chunks=2, num_correct_chunks=2)
        assert chunks.eval()[:2] == (0.5, 1.0)
    """

    def __init__(self, name: str | None = None) -> None:
        super().__init__(name)
        self.num_infer_chunks = 0
        self.num_label_chunks = 0
        self.num_correct_chunks = 0

    def update(  # type: ignore[override]  # as in Fluid
        self, num_infer_chunks: Array | int, num_label_chunks: Array | int, num_correct_chunks: Array | int
    ) -> None:
        """Adds a batch.

        Args:
            num_infer_chunks (int | numpy.ndarray): number of predicted chunks.
            num_label_chunks (int | numpy.ndarray): number of labelled chunks.
            num_correct_chunks (int | numpy.ndarray): number of correctly predicted chunks.
        """
        self.num_infer_chunks += count_of(num_infer_chunks, "num_infer_chunks")
        self.num_label_chunks += count_of(num_label_chunks, "num_label_chunks")
        self.num_correct_chunks += count_of(num_correct_chunks, "num_correct_chunks")

    def eval(self) -> tuple[Any, ...]:
        """Returns the metrics over all batches.

        Returns:
            tuple[float, float, float]: precision, recall, F1.
        """
        precision = ratio(self.num_correct_chunks, self.num_infer_chunks)
        recall = ratio(self.num_correct_chunks, self.num_label_chunks)
        return precision, recall, ratio(2 * precision * recall, precision + recall)


class EditDistance(MetricBase):
    """Computes the mean edit distance, and the share of sequences with an error, from layers.edit_distance.

    Args:
        name (str | None): name of the metric; None: the name of the class.

    Example:
        distance = fluid.metrics.EditDistance('distance')
        distance.update(np.array([[0.0], [3.0]]), 2)
        assert distance.eval() == (1.5, 0.5)
    """

    def __init__(self, name: str | None) -> None:
        super().__init__(name)
        self.total_distance = 0.0
        self.seq_num = 0
        self.instance_error = 0

    def update(self, distances: Array, seq_num: Array | int) -> None:
        """Adds a batch.

        Args:
            distances (numpy.ndarray): the distances, shape [N, 1].
            seq_num (int | numpy.ndarray): the number of sequences, N.

        Raises:
            ValueError: `distances` is not an array.
        """
        if not isinstance(distances, numpy.ndarray):
            raise ValueError(f"EditDistance: distances must be an array, not {type(distances).__name__}")
        count = count_of(seq_num, "seq_num")
        self.seq_num += count
        self.instance_error += count - int(numpy.sum(distances == 0))
        self.total_distance += float(numpy.sum(distances))

    def eval(self) -> tuple[float, float]:
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
