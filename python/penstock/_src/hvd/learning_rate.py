"""Learning rates for several ranks.

Source: Goyal et al., Accurate, large minibatch SGD: training ImageNet in 1 hour (2017), sections 2.1 and 2.2.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, overload

from penstock._src.base.argument_texts import OPTIMIZER
from penstock._src.base.doc_texts import with_texts
from penstock._src.hvd.job import size
from penstock._src.hvd.operations import Average
from penstock._src.layers.learning_rate_scheduler import linear_lr_warmup

if TYPE_CHECKING:
    from penstock._src.ir.variable import Variable


@overload
def scale_learning_rate(learning_rate: float, op: object = ...) -> float: ...
@overload
def scale_learning_rate(learning_rate: Variable, op: object = ...) -> Variable: ...
@with_texts(OPTIMIZER)
def scale_learning_rate(learning_rate: Variable | float, op: object = Average) -> Variable | float:
    """Scales the learning rate of one rank for all of them.

    With Average, the joint batch is size() times as large, so the rate is multiplied by size(). With Sum, which already
    scales the gradients, or Adasum, the rate is not changed.

    Args:
        {learning_rate}
        op (object): the reduction of the gradients.

    Returns:
        float | Variable: the rate.

    Example:
        import penstock.hvd as hvd
        hvd.init()
        rate = hvd.scale_learning_rate(0.1)

    Reference:
        Goyal et al., Accurate, Large Minibatch SGD, arXiv:1706.02677, section 2.1.
    """
    return learning_rate * size() if op is Average else learning_rate


def warmup_learning_rate(learning_rate: float, warmup_steps: int, after: Variable | float | None = None) -> Variable:
    """Makes a schedule that rises in equal steps from the rate of one rank to size() times it.

    Args:
        learning_rate (float): the rate of one rank.
        warmup_steps (int): the number of runs of the program until then, at least 1.
        after (float | Variable | None): the rate from then on: a number or another schedule; None: size() *
            learning_rate.

    Returns:
        Variable: shape [1], float32: the rate of this step.

    Example:
        import penstock.hvd as hvd
        hvd.init()
        rate = hvd.warmup_learning_rate(0.1, warmup_steps=100)

    Reference:
        Goyal et al., Accurate, Large Minibatch SGD, arXiv:1706.02677, section 2.2.
    """
    full = scale_learning_rate(float(learning_rate))
    return linear_lr_warmup(full if after is None else after, warmup_steps, float(learning_rate), full)
