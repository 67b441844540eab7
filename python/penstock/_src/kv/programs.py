"""Optimizers of a store that are programs: the update of one parameter, which is applied to each key."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock import _penstock
from penstock._src.ir import unique_name
from penstock._src.ir.framework import program_guard
from penstock._src.ir.program import Program
from penstock._src.ir.variable import Variable
from penstock._src.kv.optimizer import Optimizer
from penstock._src.optimizer.base import Optimizer as FluidOptimizer

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Union

    Given = Union[Optimizer, FluidOptimizer, Program, Callable[[], FluidOptimizer]]

PARAM, GRAD = "param", "grad"
SHAPE = [2, 3]  # stands for that of any key


class ProgramOptimizer:
    """An optimizer that is a program.

    Args:
        native: the program, checked.
    """

    name = "program"
    version = 1  # a program does not change

    def __init__(self, native: _penstock.KvOptimizer) -> None:
        self._native = native

    def native(self) -> _penstock.KvOptimizer:
        return self._native


def optimizer_of(
    given: Given, startup_program: Program | None, param: Variable | str | None, grad: Variable | str | None
) -> Optimizer | ProgramOptimizer:
    """Returns what set_optimizer was given as an optimizer of a store."""
    if isinstance(given, Program):
        if startup_program is None or param is None or grad is None:
            raise TypeError(
                "kv.set_optimizer: a program comes with startup_program, param and grad: what fills its states, and "
                "which variables stand for a key and its gradient"
            )
        return ProgramOptimizer(
            _penstock.KvOptimizer.of_program(given.desc, startup_program.desc, _name_of(param), _name_of(grad))
        )
    if startup_program is not None or param is not None or grad is not None:
        raise TypeError("kv.set_optimizer: startup_program, param and grad belong to a Program")
    if isinstance(given, Optimizer):
        return given
    if isinstance(given, FluidOptimizer) or callable(given):
        return _of_fluid(given)
    raise TypeError(
        "kv.set_optimizer: takes what kv.optimizer.create() returns, an optimizer of fluid.optimizer, a function that "
        f"makes one, or a Program, not {type(given).__name__}"
    )


def _name_of(variable: Variable | str) -> str:
    return variable.name if isinstance(variable, Variable) else variable


def _of_fluid(given: FluidOptimizer | Callable[[], FluidOptimizer]) -> ProgramOptimizer:
    """Builds the update of one parameter; the names are the same in each worker."""
    main, startup = Program(), Program()
    with program_guard(main, startup), unique_name.guard():
        block = main.global_block()
        param = block.create_parameter(name=PARAM, shape=SHAPE, dtype="float32")
        grad = block.create_var(name=GRAD, shape=SHAPE, dtype="float32")
        optimizer = given if isinstance(given, FluidOptimizer) else given()
        if not isinstance(optimizer, FluidOptimizer):
            raise TypeError(
                "kv.set_optimizer: the function returns an optimizer of fluid.optimizer, "
                f"not {type(optimizer).__name__}"
            )
        rate = optimizer._learning_rate
        if isinstance(rate, Variable) and rate.block.program is not main:
            raise ValueError(
                f"kv.set_optimizer: the learning rate, {rate.name}, is a variable of another program; give a function "
                "that makes the schedule and the optimizer"
            )
        optimizer.apply_gradients([(param, grad)])
    return ProgramOptimizer(_penstock.KvOptimizer.of_program(main.desc, startup.desc, PARAM, GRAD))
