"""The default programs, to which layers add ops, and what is set around them: name scopes and devices."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from penstock._src.base.doc_texts import with_texts
from penstock._src.ir.op_scope import fill_context, switch_device
from penstock._src.ir.op_scope import name_scopes as name_scopes
from penstock._src.ir.program import Program as Program

if TYPE_CHECKING:
    from collections.abc import Iterator

    from penstock._src.ir.variable import Variable


@contextlib.contextmanager
def name_scope(prefix: str | None = None) -> Iterator[None]:
    """Sets the name scope of ops that are created inside it, in their attribute op_namescope. Name scopes only help
    readers of programs.

    Args:
        prefix (str): name of the scope.

    Returns:
        A context manager.

    Raises:
        ValueError: `prefix` is empty.

    Example:
        with fluid.name_scope('encoder'):
            y = fluid.layers.fc(fluid.data('x', [None, 4]), 2)
        assert fluid.default_main_program().global_block().ops[0].attr('op_namescope') == '/encoder/'
    """
    if not prefix:
        raise ValueError("a name scope needs a name")
    name_scopes().enter(prefix)
    _enter_scope()
    try:
        yield
    finally:
        name_scopes().leave()
        _enter_scope()


@contextlib.contextmanager
def device_guard(device: str | None = None) -> Iterator[None]:
    """Sets the device of ops that are created inside it, in their attribute op_device. All ops run on the CPU.

    Args:
        device (str | None): 'cpu', 'gpu', or None for no preference.

    Yields:
        None: ops created inside have the device.

    Raises:
        ValueError: `device` has another value.

    Example:
        with fluid.device_guard('cpu'):
            one = fluid.layers.fill_constant([1], 'float32', 1.0)
        assert fluid.default_main_program().global_block().ops[-1].attr('op_device') == 'cpu'
    """
    if device not in ("cpu", "gpu", "", None):
        raise ValueError(f"device_guard: the device must be 'cpu', 'gpu' or None, not {device!r}")
    outer = switch_device(device or "")
    _enter_scope()
    try:
        yield
    finally:
        switch_device(outer)
        _enter_scope()


def _enter_scope() -> None:
    for program in _defaults.values():
        fill_context(program._op_context)


_defaults = {"main": Program(), "startup": Program()}


def default_main_program() -> Program:
    """Returns the program to which layers add ops.

    Returns:
        Program: the program of the innermost program_guard, or else the program of the process.

    Example:
        y = fluid.layers.fc(fluid.data('x', [None, 4]), 2)
        print(fluid.default_main_program())
    """
    return _defaults["main"]


def default_startup_program() -> Program:
    """Returns the program to which layers add the ops that initialise parameters.

    Returns:
        Program: the program of the innermost program_guard, or else the program of the process.

    Example:
        y = fluid.layers.fc(fluid.data('x', [None, 4]), 2)
        fluid.Executor(fluid.CPUPlace()).run(fluid.default_startup_program())
    """
    return _defaults["startup"]


def _require_program(function: str, program: Program) -> None:
    if not isinstance(program, Program):
        raise TypeError(f"{function} takes a Program, not {'None' if program is None else type(program).__name__}")


def _switch_program(which: str, program: Program) -> Program:
    """Makes a program the default one, 'main' or 'startup'; returns the one before it."""
    _require_program(f"switch_{which}_program", program)
    old, _defaults[which] = _defaults[which], program
    _enter_scope()
    return old


_SWITCH = """Makes another program the default {which} program.

    Args:
        program (Program): the new program.

    Returns:
        Program: the previous program.

    Raises:
        TypeError: `program` is not a Program.

    Example:
        old = fluid.framework.switch_{which}_program(fluid.Program())
        fluid.framework.switch_{which}_program(old)
"""


@with_texts(which="main", switch=_SWITCH)
def switch_main_program(program: Program) -> Program:
    """{switch}"""
    return _switch_program("main", program)


@with_texts(which="startup", switch=_SWITCH)
def switch_startup_program(program: Program) -> Program:
    """{switch}"""
    return _switch_program("startup", program)


def _get_var(name: str, program: Program | None = None) -> Variable | None:
    """Returns the variable `name` in block 0 of a program; None: the default main program."""
    return (default_main_program() if program is None else program).global_block().var(name)


@contextlib.contextmanager
def program_guard(main_program: Program, startup_program: Program | None = None) -> Iterator[None]:
    """Makes other programs the default programs inside a with statement.

    Args:
        main_program (Program): layers add their ops to it.
        startup_program (Program | None): layers add the ops that initialise parameters to it; None: the default startup
            program does not change.

    Returns:
        A context manager.

    Raises:
        TypeError: an argument is not a Program.

    Example:
        main, startup = fluid.Program(), fluid.Program()
        with fluid.program_guard(main, startup):
            y = fluid.layers.fc(fluid.data('x', [None, 4]), 2)
    """
    _require_program("program_guard", main_program)
    if startup_program is not None:
        _require_program("program_guard", startup_program)
    old_main = switch_main_program(main_program)
    old_startup = None if startup_program is None else switch_startup_program(startup_program)
    try:
        yield
    finally:
        switch_main_program(old_main)
        if old_startup is not None:
            switch_startup_program(old_startup)
