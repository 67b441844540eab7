"""memory_optimize and release_memory: rewrite a program so that it needs less memory.

Since version 1.6 Fluid's functions only log a warning. These rewrite the given program, as Fluid's did before:

    fluid.memory_optimize(fluid.default_main_program(), skip_opt_set=[loss])

skip_opt_set must contain fetched variables, because a variable that takes another's buffer loses its name. Variables
that are fed, kept between steps, sent or received are not changed, so the functions work before and after transpile.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock import _penstock
from penstock._src.ir.program import Program

if TYPE_CHECKING:
    from collections.abc import Sequence

    from penstock._penstock import ProgramDesc
    from penstock._src.ir.variable import Variable


def memory_optimize(
    input_program: Program,
    skip_opt_set: Sequence[Variable | str] | None = None,
    print_log: bool = False,
    level: int = 0,
    skip_grads: bool = True,
) -> None:
    """Rewrites a program so that temporaries share buffers.

    Variables that are fed, kept between runs, sent or received are not changed, so it works before and after
    `transpile`. `skip_opt_set` must contain fetched variables, because a variable that takes another's buffer loses its
    name.

    Args:
        input_program (Program): the program, which is changed.
        skip_opt_set (list[Variable | str] | None): variables that keep their own buffers.
        print_log (bool): print which variable takes which buffer, and how many bytes that saves.
        level (int): 0: only buffers of the same type and shape; 1: also larger ones.
        skip_grads (bool): do not change variables that the backward pass writes.

    Raises:
        ValueError: `level` is neither 0 nor 1.
        TypeError: `input_program` is not a Program.

    Example:
        loss = fluid.layers.mean(fluid.layers.fc(fluid.data('x', [None, 4]), 1))
        fluid.optimizer.SGD(0.01).minimize(loss)
        fluid.memory_optimize(fluid.default_main_program(), skip_opt_set=[loss])
    """
    if level not in (0, 1):
        raise ValueError(f"level must be 0 or 1, not {level!r}")
    less, report = _penstock.reuse_buffers(_desc(input_program), _names(skip_opt_set), level == 1, bool(skip_grads))
    _rewrite(input_program, less, report if print_log else "")


def release_memory(input_program: Program, skip_opt_set: Sequence[Variable | str] | None = None) -> None:
    """Rewrites a program so that each temporary is freed after its last use.

    Args:
        input_program (Program): the program, which is changed.
        skip_opt_set (list[Variable | str] | None): variables that are kept.

    Raises:
        TypeError: `input_program` is not a Program.

    Example:
        loss = fluid.layers.mean(fluid.layers.fc(fluid.data('x', [None, 4]), 1))
        fluid.optimizer.SGD(0.01).minimize(loss)
        fluid.release_memory(fluid.default_main_program(), skip_opt_set=[loss])
    """
    less, _ = _penstock.release_buffers(_desc(input_program), _names(skip_opt_set))
    _rewrite(input_program, less, "")


def _desc(program: Program) -> ProgramDesc:
    if not isinstance(program, Program):
        raise TypeError(f"a Program is needed, not {type(program).__name__}")
    return program.desc


def _names(variables: Sequence[Variable | str] | None) -> list[str]:
    if variables is None:
        return []
    if isinstance(variables, str):
        variables = [variables]
    return [variable if isinstance(variable, str) else variable.name for variable in variables]


def _rewrite(program: Program, less: ProgramDesc, report: str) -> None:
    if report:
        print(report, end="")
    if less.content_id != program.desc.content_id:
        program._rebind(less)
