"""Learning rates of several ranks.

Source: Goyal et al., Accurate, large minibatch SGD: training ImageNet in 1 hour (2017), sections 2.1 and 2.2.
"""

from penstock.fluid.layers import linear_lr_warmup
from penstock.hvd._arrays import Average
from penstock.hvd._job import size


def scale_learning_rate(learning_rate, op=Average):
    """The learning rate of one rank, a number or a schedule, for all: size() times it where gradients are averaged, for
    the batch is as many times larger; itself where op is Sum, which scales gradients already, or Adasum."""
    return learning_rate * size() if op is Average else learning_rate


def warmup_learning_rate(learning_rate, warmup_steps, after=None):
    """A schedule on the default main program: from `learning_rate`, that of one rank, in equal steps to size() times
    it, as large batches need in the first epochs.

    learning_rate  a number
    warmup_steps   how many runs of the program that takes, at least 1
    after          what follows: another schedule, or a number; size() * learning_rate if it is not given

        rate = hvd.warmup_learning_rate(0.1, 5 * steps_per_epoch)
        hvd.DistributedOptimizer(fluid.optimizer.SGD(rate)).minimize(loss)
    """
    full = scale_learning_rate(float(learning_rate))
    return linear_lr_warmup(full if after is None else after, warmup_steps, float(learning_rate), full)
