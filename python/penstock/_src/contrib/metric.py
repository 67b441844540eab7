"""Sums over all batches from which metrics of a click model are computed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock._src.layers import arithmetic, creation, tensor, unary
from penstock._src.layers.helper import LayerHelper
from penstock._src.parameters.initializer import Constant

if TYPE_CHECKING:
    from penstock._src.ir.variable import Variable


def ctr_metric_bundle(input: Variable, label: Variable) -> tuple[Variable, ...]:
    """Accumulates, over all batches, the sums from which MAE, RMSE, and predicted and actual click rate are computed.

    Args:
        input (Variable): the predicted probabilities, shape [N, 1], float32.
        label (Variable): 1 for a click, else 0, same shape and type as `input`.

    Returns:
        tuple: six persistable Variables of shape [1]: the sums of squared errors, of absolute errors, of predictions,
        of sigmoids of predictions, of labels, and the number of examples. RMSE, for example, is sqrt(first / last).

    Raises:
        TypeError: `input` or `label` is not a Variable.
        ValueError: the shapes differ.

    Example:
        p, y = fluid.data('p', [None, 1]), fluid.data('y', [None, 1])
        squared, absolute, predicted, q, clicks, count = fluid.contrib.layers.ctr_metric_bundle(p, y)
    """
    helper = LayerHelper("ctr_metric_bundle").takes(input=input, label=label)
    if input.shape != label.shape:
        raise ValueError(
            f"ctr_metric_bundle: input is {list(input.shape)} and label is {list(label.shape)}; they must have the "
            "same shape"
        )
    error = arithmetic.elementwise_sub(input, label)
    ones = creation.fill_constant_batch_size_like(label, [-1, 1], "float32", 1.0)
    of_batch = [unary.square(error), unary.abs(error), input, unary.sigmoid(input), label, ones]
    sums = []
    for each in of_batch:
        state = helper.create_global_variable(persistable=True, dtype="float32", shape=[1])
        helper.set_variable_initializer(state, Constant(0.0, force_cpu=True))
        tensor.sums([state, arithmetic.reduce_sum(each)], out=state)
        sums.append(state)
    return tuple(sums)
