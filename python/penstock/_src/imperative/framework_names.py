"""Names of fluid.framework that concern imperative mode, which is never on."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

from penstock._src.imperative import refused

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, NoReturn, TypeVar

    from penstock._src.ir.variable import Variable

    _Function = TypeVar("_Function", bound=Callable[..., Any])


ParamBase = refused.class_of("fluid.framework.ParamBase")
_dygraph_guard = refused.function_of("fluid.framework._dygraph_guard")


class ComplexVariable(metaclass=refused.Imperative):
    """A complex tensor of imperative mode, which is not part of Penstock.

    Args:
        real (Variable): not used.
        imag (Variable): not used.

    Raises:
        NotImplementedError: always.

    Example:
        try:
            fluid.ComplexVariable(None, None)
        except NotImplementedError as error:
            print(error)
    """

    _imperative_name = "fluid.ComplexVariable"

    def __init__(self, real: Variable, imag: Variable) -> None:
        raise refused.refusal(self._imperative_name)


def _dygraph_tracer() -> None:
    return None


def _current_expected_place() -> None:
    return None


def dygraph_only(function: Callable[..., Any]) -> Callable[..., NoReturn]:
    """Decorates a function of imperative mode: a call raises the error."""

    @functools.wraps(function)
    def unusable(*args: Any, **kwargs: Any) -> NoReturn:
        raise refused.refusal(function.__name__)

    return unusable


def dygraph_not_support(function: _Function) -> _Function:
    """Returns the function: it is for programs."""
    return function
