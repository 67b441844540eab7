"""Decorators that keep a function's signature."""

from __future__ import annotations

import contextlib
import functools
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


def wrap_decorator(decorator_func: Callable[..., Any]) -> Callable[..., Any]:
    """Returns a decorator like `decorator_func` whose results have the name, docstring and signature of the wrapped
    function.

    Args:
        decorator_func (callable): takes a function and returns another.

    Returns:
        function: the decorator.

    Example:
        from penstock.fluid.wrapped_decorator import wrap_decorator
        twice = wrap_decorator(lambda f: lambda x: 2 * f(x))
        assert twice(abs)(-3) == 6 and twice(abs).__name__ == 'abs'
    """
    return lambda func: functools.wraps(func)(decorator_func(func))


signature_safe_contextmanager = contextlib.contextmanager
