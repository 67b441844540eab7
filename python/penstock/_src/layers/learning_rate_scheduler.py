"""Learning rate schedules: ops that compute the rate from the number of steps, before a program's updates.

Each schedule counts steps in a variable of the program and returns the rate as a Variable. Pass it to an optimizer:

    fluid.optimizer.SGD(layers.exponential_decay(0.1, decay_steps=1000, decay_rate=0.9))
"""

from __future__ import annotations

import functools
import inspect
import math
import numbers
from typing import TYPE_CHECKING

from penstock._src.base.errors import program_error
from penstock._src.ir import framework
from penstock._src.ir.types import require_finite
from penstock._src.ir.variable import Variable
from penstock._src.layers import arithmetic, control_flow, creation, nn, tensor, unary
from penstock._src.layers.decorators import layer

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from typing_extensions import ParamSpec

    P = ParamSpec("P")


_COUNTER = "@LR_DECAY_COUNTER@"
_DIVISORS = ("d_model", "decay_steps", "epochs", "step_each_epoch", "warmup_steps")


def _schedule(layer: Callable[P, Variable]) -> Callable[P, Variable]:
    """Decorates a layer so that its ops have the role by which the transpiler recognises schedules."""
    signature = inspect.signature(layer)

    @functools.wraps(layer)
    def guarded(*args: P.args, **kwargs: P.kwargs) -> Variable:
        for name, value in signature.bind(*args, **kwargs).arguments.items():
            if value is None or isinstance(value, str):
                raise TypeError(f"{layer.__name__}: {name} must be a number or a Variable, not {value!r}")
            for one in value if isinstance(value, (list, tuple)) else [value]:
                if isinstance(one, float):
                    require_finite(layer.__name__, **{name: one})
            if name in _DIVISORS and isinstance(value, numbers.Real) and not float(value) > 0:
                raise program_error("E-hyperparameter", f"{layer.__name__}: {name} must be above 0, not {value!r}")
        with framework.default_main_program()._lr_schedule_guard():
            return layer(*args, **kwargs)

    return guarded


def _decay_step_counter(begin: int = 0) -> Variable:
    """Returns the number of the step, counted from `begin`, as float32. Scripts use it for their own schedules."""
    return tensor.cast(nn.autoincreased_step_counter(_COUNTER, begin=begin, step=1), "float32")


def _periods(steps: int, staircase: bool) -> Variable:
    """Returns the number of periods of `steps` steps; an integer with staircase."""
    passed = _decay_step_counter() / steps
    return unary.floor(passed) if staircase else passed


@_schedule
def noam_decay(
    d_model: int | Variable, warmup_steps: int | Variable, learning_rate: float | Variable = 1.0
) -> Variable:
    """Computes learning_rate * d_model ** -0.5 * min(step ** -0.5, step * warmup_steps ** -1.5).

    Steps are counted from 1.

    Args:
        d_model (int | Variable): width of the model; a Variable has shape [1], float32.
        warmup_steps (int | Variable): number of steps in which the rate rises; a Variable has shape [1], float32.
        learning_rate (float | Variable): factor of the rate; a Variable has shape [1], float32.

    Returns:
        Variable: shape [1], float32: the rate of this step.

    Example:
        rate = fluid.layers.noam_decay(d_model=512, warmup_steps=4000)
        optimizer = fluid.optimizer.SGD(rate)

    Reference:
        Vaswani et al., Attention Is All You Need, NIPS 2017.
    """
    step = _decay_step_counter(1)
    falling = step**-0.5
    rising = (warmup_steps**-1.5) * step
    return learning_rate * (d_model**-0.5) * arithmetic.elementwise_min(x=falling, y=rising)


@_schedule
def exponential_decay(
    learning_rate: float | Variable, decay_steps: int, decay_rate: float, staircase: bool = False
) -> Variable:
    """Computes learning_rate * decay_rate ** (step / decay_steps).

    Args:
        learning_rate (float | Variable): rate in step 0; a Variable has shape [1], float32.
        decay_steps (int): number of steps after which the rate has been multiplied by `decay_rate` once.
        decay_rate (float): the factor.
        staircase (bool): round step / decay_steps down.

    Returns:
        Variable: shape [1], float32: the rate of this step.

    Example:
        rate = fluid.layers.exponential_decay(0.1, decay_steps=1000, decay_rate=0.9)
        optimizer = fluid.optimizer.SGD(rate)
    """
    return learning_rate * (decay_rate ** _periods(decay_steps, staircase))


@_schedule
@layer(like=exponential_decay)
def natural_exp_decay(
    learning_rate: float | Variable, decay_steps: int, decay_rate: float, staircase: bool = False
) -> Variable:
    """Computes learning_rate * exp(-decay_rate * step / decay_steps).

    Args:
        decay_steps (int): number of steps of one period.
        decay_rate (float): amount by which the exponent decreases in one period.

    Example:
        rate = fluid.layers.natural_exp_decay(0.1, decay_steps=1000, decay_rate=0.5)
    """
    return learning_rate * unary.exp(-1 * decay_rate * _periods(decay_steps, staircase))


@_schedule
@layer(like=exponential_decay)
def inverse_time_decay(
    learning_rate: float | Variable, decay_steps: int, decay_rate: float, staircase: bool = False
) -> Variable:
    """Computes learning_rate / (1 + decay_rate * step / decay_steps).

    Args:
        decay_steps (int): number of steps of one period.
        decay_rate (float): growth of the divisor in one period.

    Example:
        rate = fluid.layers.inverse_time_decay(0.1, decay_steps=1000, decay_rate=0.5)
    """
    return learning_rate / (1 + decay_rate * _periods(decay_steps, staircase))


@_schedule
@layer(like=exponential_decay)
def polynomial_decay(
    learning_rate: float | Variable,
    decay_steps: int,
    end_learning_rate: float = 0.0001,
    power: float = 1.0,
    cycle: bool = False,
) -> Variable:
    """Lowers the rate from `learning_rate` to `end_learning_rate` in `decay_steps` steps.

    The rate is (learning_rate - end_learning_rate) * (1 - step / decay_steps) ** power + end_learning_rate.

    Args:
        decay_steps (int): number of steps of the decay.
        end_learning_rate (float): rate after `decay_steps` steps.
        power (float): exponent; 1 decreases the rate linearly.
        cycle (bool): True: after each period the decay starts again with a period that is `decay_steps` steps longer;
            False: the rate stays constant afterwards.

    Example:
        rate = fluid.layers.polynomial_decay(0.1, decay_steps=1000, end_learning_rate=0.001)
    """
    step = _decay_step_counter()
    if cycle:
        cycles = unary.ceil(step / decay_steps)
        zero = tensor.fill_constant(shape=[1], dtype="float32", value=0.0)
        one = tensor.fill_constant(shape=[1], dtype="float32", value=1.0)
        with control_flow.Switch() as switch:
            with switch.case(step == zero):
                tensor.assign(input=one, output=cycles)
        period: Any = decay_steps * cycles
    else:
        last = tensor.fill_constant(shape=[1], dtype="float32", value=float(decay_steps))
        period, step = decay_steps, arithmetic.elementwise_min(x=step, y=last)
    rate: Variable = (learning_rate - end_learning_rate) * ((1 - step / period) ** power) + end_learning_rate
    return rate


@_schedule
@layer(like=exponential_decay)
def piecewise_decay(boundaries: Sequence[int], values: Sequence[float]) -> Variable:
    """Sets the rate to values[i] before step boundaries[i], and to the last value after all boundaries.

    Args:
        boundaries (list[int]): steps in ascending order.
        values (list[float]): rates, one more than `boundaries`.

    Raises:
        ValueError: the number of values is not the number of boundaries plus 1.
        penstock.ProgramError: E-hyperparameter: the boundaries descend.

    Example:
        rate = fluid.layers.piecewise_decay(boundaries=[1000, 2000], values=[0.1, 0.01, 0.001])
    """
    if len(values) - len(boundaries) != 1:
        raise ValueError(
            f"there must be one value more than boundaries; there are {len(values)} values and {len(boundaries)} "
            "boundaries"
        )
    for before, after in zip(boundaries, boundaries[1:]):
        if after < before:
            raise program_error(
                "E-hyperparameter", f"piecewise_decay: boundaries must ascend, but {after!r} comes after {before!r}"
            )
    step = _decay_step_counter()
    rate = creation.create_global_var(shape=[1], value=0.0, dtype="float32", persistable=True, name="learning_rate")
    with control_flow.Switch() as switch:
        for boundary, value in zip(boundaries, values):
            end = tensor.fill_constant(shape=[1], dtype="float32", value=float(boundary), force_cpu=True)
            constant = tensor.fill_constant(shape=[1], dtype="float32", value=float(value))
            with switch.case(step < end):
                tensor.assign(constant, rate)
        last = tensor.fill_constant(shape=[1], dtype="float32", value=float(values[-1]))
        with switch.default():
            tensor.assign(last, rate)
    return rate


@_schedule
@layer(like=exponential_decay)
def cosine_decay(learning_rate: float | Variable, step_each_epoch: int, epochs: int) -> Variable:
    """Computes learning_rate * 0.5 * (cos(epoch * pi / epochs) + 1).

    Args:
        learning_rate (float | Variable): rate in epoch 0; a Variable has shape [1], float32.
        step_each_epoch (int): number of steps of an epoch.
        epochs (int): number of epochs.

    Example:
        rate = fluid.layers.cosine_decay(0.1, step_each_epoch=100, epochs=90)

    Reference:
        Loshchilov and Hutter, SGDR, ICLR 2017.
    """
    epoch = unary.floor(_decay_step_counter() / step_each_epoch)
    return learning_rate * 0.5 * (unary.cos(epoch * math.pi / epochs) + 1)


@_schedule
@layer(like=exponential_decay)
def linear_lr_warmup(learning_rate: float | Variable, warmup_steps: int, start_lr: float, end_lr: float) -> Variable:
    """Raises the rate from `start_lr` to `end_lr` in `warmup_steps` steps, then uses `learning_rate`.

    Args:
        learning_rate (float | Variable): the rate after the warm-up: a number, or another schedule.
        warmup_steps (int): number of steps of the warm-up.
        start_lr (float): rate in step 0.
        end_lr (float): rate at the end of the warm-up.

    Raises:
        TypeError: `learning_rate` is neither a number nor a Variable.

    Example:
        after = fluid.layers.cosine_decay(0.1, step_each_epoch=100, epochs=90)
        rate = fluid.layers.linear_lr_warmup(after, warmup_steps=50, start_lr=0.0, end_lr=0.1)
    """
    if not isinstance(learning_rate, (int, float, Variable)):
        raise TypeError(f"learning_rate must be a number or a Variable, not {type(learning_rate).__name__}")
    growth = float(end_lr) - float(start_lr)
    rate = creation.create_global_var(
        shape=[1], value=0.0, dtype="float32", persistable=True, name="learning_rate_warmup"
    )
    step = _decay_step_counter()
    with control_flow.Switch() as switch:
        with switch.case(step < warmup_steps):
            tensor.assign(start_lr + growth * (step / float(warmup_steps)), rate)
        with switch.default():
            if not isinstance(learning_rate, Variable):
                learning_rate = tensor.fill_constant(shape=[1], dtype="float32", value=float(learning_rate))
            tensor.assign(learning_rate, rate)
    return rate
