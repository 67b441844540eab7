"""Learning rates that follow the number of steps: ops that a program runs before its updates.

Each counts steps in a variable of the program and returns the rate as a Variable, to be given to an optimizer:

    fluid.optimizer.SGD(layers.exponential_decay(0.1, decay_steps=1000, decay_rate=0.9))
"""

import functools
import inspect
import math

from penstock.fluid import framework
from penstock.fluid.framework import Variable
from penstock.fluid.layers import arithmetic, control_flow, nn, ops, tensor

__all__ = [
    'cosine_decay', 'exponential_decay', 'inverse_time_decay', 'linear_lr_warmup', 'natural_exp_decay', 'noam_decay',
    'piecewise_decay', 'polynomial_decay',
]

_COUNTER = '@LR_DECAY_COUNTER@'


def _schedule(layer):
    """The layer's ops get the role by which the transpiler knows them."""
    signature = inspect.signature(layer)

    @functools.wraps(layer)
    def guarded(*args, **kwargs):
        for name, value in signature.bind(*args, **kwargs).arguments.items():
            if value is None or isinstance(value, str):
                raise TypeError('%s: %s must be a number or a Variable, not %r' % (layer.__name__, name, value))
        with framework.default_main_program()._lr_schedule_guard():
            return layer(*args, **kwargs)

    return guarded


def _decay_step_counter(begin=0):
    """The number of the step, counted from `begin`, as float32. Scripts make schedules of their own with it."""
    return tensor.cast(nn.autoincreased_step_counter(_COUNTER, begin=begin, step=1), 'float32')


def _periods(steps, staircase):
    """How many times `steps` have passed; whole numbers of them with staircase."""
    passed = _decay_step_counter() / steps
    return ops.floor(passed) if staircase else passed


@_schedule
def noam_decay(d_model, warmup_steps, learning_rate=1.0):
    """learning_rate * d_model^-0.5 * min(step^-0.5, step * warmup_steps^-1.5), steps counted from 1"""
    step = _decay_step_counter(1)
    falling = step**-0.5
    rising = (warmup_steps**-1.5) * step
    return learning_rate * (d_model**-0.5) * arithmetic.elementwise_min(x=falling, y=rising)


@_schedule
def exponential_decay(learning_rate, decay_steps, decay_rate, staircase=False):
    """learning_rate * decay_rate^(step / decay_steps)"""
    return learning_rate * (decay_rate**_periods(decay_steps, staircase))


@_schedule
def natural_exp_decay(learning_rate, decay_steps, decay_rate, staircase=False):
    """learning_rate * exp(-decay_rate * step / decay_steps)"""
    return learning_rate * ops.exp(-1 * decay_rate * _periods(decay_steps, staircase))


@_schedule
def inverse_time_decay(learning_rate, decay_steps, decay_rate, staircase=False):
    """learning_rate / (1 + decay_rate * step / decay_steps)"""
    return learning_rate / (1 + decay_rate * _periods(decay_steps, staircase))


@_schedule
def polynomial_decay(learning_rate, decay_steps, end_learning_rate=0.0001, power=1.0, cycle=False):
    """From learning_rate down to end_learning_rate in decay_steps; with cycle again and again, each time slower."""
    step = _decay_step_counter()
    if cycle:
        cycles = ops.ceil(step / decay_steps)
        zero = tensor.fill_constant(shape=[1], dtype='float32', value=0.0)
        one = tensor.fill_constant(shape=[1], dtype='float32', value=1.0)
        with control_flow.Switch() as switch:
            with switch.case(step == zero):
                tensor.assign(input=one, output=cycles)
        decay_steps = decay_steps * cycles
    else:
        last = tensor.fill_constant(shape=[1], dtype='float32', value=float(decay_steps))
        step = arithmetic.elementwise_min(x=step, y=last)
    return (learning_rate - end_learning_rate) * ((1 - step / decay_steps)**power) + end_learning_rate


@_schedule
def piecewise_decay(boundaries, values):
    """values[i] before step boundaries[i], the last value after all of them."""
    if len(values) - len(boundaries) != 1:
        raise ValueError('there must be one value more than boundaries; there are %d values and %d boundaries' %
                         (len(values), len(boundaries)))
    step = _decay_step_counter()
    rate = tensor.create_global_var(shape=[1], value=0.0, dtype='float32', persistable=True, name='learning_rate')
    with control_flow.Switch() as switch:
        for boundary, value in zip(boundaries, values):
            boundary = tensor.fill_constant(shape=[1], dtype='float32', value=float(boundary), force_cpu=True)
            value = tensor.fill_constant(shape=[1], dtype='float32', value=float(value))
            with switch.case(step < boundary):
                tensor.assign(value, rate)
        last = tensor.fill_constant(shape=[1], dtype='float32', value=float(values[-1]))
        with switch.default():
            tensor.assign(last, rate)
    return rate


@_schedule
def cosine_decay(learning_rate, step_each_epoch, epochs):
    """learning_rate * 0.5 * (cos(epoch * pi / epochs) + 1)"""
    epoch = ops.floor(_decay_step_counter() / step_each_epoch)
    return learning_rate * 0.5 * (ops.cos(epoch * math.pi / epochs) + 1)


@_schedule
def linear_lr_warmup(learning_rate, warmup_steps, start_lr, end_lr):
    """From start_lr to end_lr in warmup_steps, then learning_rate: a number or another schedule."""
    if not isinstance(learning_rate, (int, float, Variable)):
        raise TypeError('learning_rate must be a number or a Variable, not %s' % type(learning_rate).__name__)
    growth = float(end_lr) - float(start_lr)
    rate = tensor.create_global_var(shape=[1], value=0.0, dtype='float32', persistable=True,
                                    name='learning_rate_warmup')
    step = _decay_step_counter()
    with control_flow.Switch() as switch:
        with switch.case(step < warmup_steps):
            tensor.assign(start_lr + growth * (step / float(warmup_steps)), rate)
        with switch.default():
            if not isinstance(learning_rate, Variable):
                learning_rate = tensor.fill_constant(shape=[1], dtype='float32', value=float(learning_rate))
            tensor.assign(learning_rate, rate)
    return rate
