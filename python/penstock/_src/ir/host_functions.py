"""The user's functions that programs call by number (py_func), and their exceptions."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING

import numpy

from penstock._penstock import LoDTensor, add_host_function

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from penstock._penstock import StateError
    from penstock._src.ir.typing import Array


_functions: list[Function] = []


class Function:
    """A registered function; programs refer to it by `number`."""

    def __init__(self, function: Callable[..., Any]) -> None:
        if not callable(function):
            raise TypeError(f"func must be callable, not {function!r}")
        self.function = function
        self.name = getattr(function, "__name__", type(function).__name__)
        self.error: BaseException | None = None
        self._takes_any = _takes_any(function)
        self.number = add_host_function(self)
        _functions.append(self)

    @property
    def place(self) -> str:
        return f"in the function of number {self.number}:"

    def __call__(self, tensors: list[LoDTensor | None]) -> list[Array | LoDTensor | None]:
        """C++ calls it with a list that has a LoDTensor or None for each variable, and accepts such a list as the
        result."""
        try:
            given = self.function(*tensors) if self._takes_any else self.function()
        except BaseException as error:
            self.error = error
            raise
        given = given if isinstance(given, (list, tuple)) else [given]
        return [each if each is None or isinstance(each, LoDTensor) else numpy.asarray(each) for each in given]


def _takes_any(function: Callable[..., Any]) -> bool:
    try:
        return bool(inspect.signature(function).parameters)
    except (TypeError, ValueError):  # a builtin may have no signature
        return True


def registered(number: int) -> Callable[..., Any]:
    """Returns the function with a number."""
    return _functions[number].function


def count() -> int:
    return len(_functions)


def raise_from_function(error: StateError) -> None:
    """Raises `error` with the exception of the function that caused it, if there is one."""
    if error.id != "E-py-func-raised":
        return
    for function in _functions:
        if error.details[0] == function.place and function.error is not None:
            cause, function.error = function.error, None
            raise error from cause
