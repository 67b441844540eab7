"""Learning rate schedules: ops that compute the rate from the number of steps, before a program's updates.

Each schedule counts steps in a variable of the program and returns the rate as a Variable. Pass it to an optimizer:

    fluid.optimizer.SGD(layers.exponential_decay(0.1, decay_steps=1000, decay_rate=0.9))
"""

# Written by tools/dev/gen_names.py.
from penstock._src.names import facade

if facade.TYPE_CHECKING:
    from penstock._src.ir.variable import Variable as Variable
    from penstock._src.layers.learning_rate_scheduler import _decay_step_counter as _decay_step_counter, cosine_decay
    from penstock._src.layers.learning_rate_scheduler import exponential_decay, inverse_time_decay, linear_lr_warmup
    from penstock._src.layers.learning_rate_scheduler import natural_exp_decay, noam_decay, piecewise_decay
    from penstock._src.layers.learning_rate_scheduler import polynomial_decay
    from penstock.fluid.layers import control_flow as control_flow, nn as nn, ops as ops, tensor as tensor

__all__ = [
    'cosine_decay', 'exponential_decay', 'inverse_time_decay', 'linear_lr_warmup', 'natural_exp_decay', 'noam_decay',
    'piecewise_decay', 'polynomial_decay',
]

facade.make(__name__)
