"""Learning rates of several ranks.

Source: Goyal et al., Accurate, large minibatch SGD: training ImageNet in 1 hour (2017), sections 2.1 and 2.2.
"""

from penstock.fluid.layers import linear_lr_warmup
from penstock.hvd._arrays import Average
from penstock.hvd._job import size


def scale_learning_rate(learning_rate, op=Average):
    """Scales the learning rate of one rank for all of them.

    The batch is size() times as large where gradients are averaged, so the rate is, too. With Sum, which scales
    gradients already, or Adasum it stays.

    Args:
        learning_rate (float | Variable): a number, or a schedule.
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


def warmup_learning_rate(learning_rate, warmup_steps, after=None):
    """Makes a schedule that rises in equal steps from the rate of one rank to size() times it.

    Args:
        learning_rate (float): the rate of one rank.
        warmup_steps (int): number of runs of the program that it takes, at least 1.
        after (float | Variable | None): what follows: a number or another schedule; None: size() * learning_rate.

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
