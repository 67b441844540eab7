"""Metrics computed by ops."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock._src.layers import nn
from penstock._src.layers.decorators import layer
from penstock._src.layers.helper import LayerHelper
from penstock._src.parameters.initializer import Constant

if TYPE_CHECKING:
    from typing import Any

    from penstock._src.ir.variable import Variable


@layer("accuracy", fluid_accepts={"input": "float16 float32 float64"})
def accuracy(
    input: Variable, label: Variable, k: int = 1, correct: Variable | None = None, total: Variable | None = None
) -> Variable:
    """Computes the top-k accuracy: the share of rows whose label is among the k highest scores.

    Args:
        input (Variable): the scores, shape [N, D].
        label (Variable): the labels, shape [N, 1], int64 or int32.
        k (int): the number of highest scores that count.
        correct (Variable | None): receives the number of correct rows, shape [1], int32.
        total (Variable | None): receives N, shape [1], int32.

    Returns:
        Variable: shape [1], float32.

    Example:
        scores = fluid.data('scores', [None, 10])
        label = fluid.data('label', [None, 1], 'int64')
        top5 = fluid.layers.accuracy(scores, label, k=5)
    """
    helper = LayerHelper("accuracy")
    values, indices = nn.topk(input, k=k)
    share = helper.create_variable_for_type_inference("float32")
    if correct is None:
        correct = helper.create_variable_for_type_inference("int32")
    if total is None:
        total = helper.create_variable_for_type_inference("int32")
    helper.append_op(
        "accuracy",
        {"Out": values, "Indices": indices, "Label": label},
        {"Accuracy": share, "Correct": correct, "Total": total},
    )
    return share


@layer("auc", fluid_accepts={"input": "float32 float64", "label": "int32 int64"})
def auc(
    input: Variable,
    label: Variable,
    curve: str = "ROC",
    num_thresholds: int = 2**12 - 1,
    topk: int = 1,
    slide_steps: int = 1,
) -> tuple[Any, ...]:
    """Computes the area under the ROC or precision-recall curve, over all batches so far and over the last batches.

    Args:
        input (Variable): the probabilities of both classes, shape [N, 2].
        label (Variable): the labels, 0 or 1, shape [N, 1].
        curve (str): 'ROC', or 'PR' for precision over recall.
        num_thresholds (int): number of thresholds, one less than the buckets of the histograms.
        topk (int): has no effect; kept for compatibility with Fluid.
        slide_steps (int): number of batches that the second result covers; 0: all batches.

    Returns:
        tuple: the area over all batches and the area over the last batches, each of shape [1], float64, and the list of
            the four persistable statistics.

    Example:
        p = fluid.layers.softmax(fluid.data('x', [None, 2]))
        label = fluid.data('label', [None, 1], 'int64')
        area, recent, statistics = fluid.layers.auc(p, label)
    """
    helper = LayerHelper("auc")
    all_batches = helper.create_variable_for_type_inference("float64")
    last_batches = helper.create_variable_for_type_inference("float64")
    buckets = num_thresholds + 1

    def statistic(shape: list[int]) -> Variable:
        return helper.create_global_variable(persistable=True, dtype="int64", shape=shape)

    window = [(1 + slide_steps) * buckets + 1] if slide_steps else [1, buckets]  # 0 steps mean all steps
    sliding = [statistic(window) for _ in range(2)]
    total = [statistic([1, buckets]) for _ in range(2)]
    for var in sliding + total:
        helper.set_variable_initializer(var, Constant(0.0))
    for out, (positive, negative), steps in ((last_batches, sliding, slide_steps), (all_batches, total, 0)):
        helper.append_op(
            "auc",
            {"Predict": input, "Label": label, "StatPos": positive, "StatNeg": negative},
            {"AUC": out, "StatPosOut": positive, "StatNegOut": negative},
            {"curve": curve, "num_thresholds": num_thresholds, "slide_steps": steps},
        )
    return all_batches, last_batches, sliding + total
