"""Marks functions whose use is discouraged."""

from __future__ import annotations

import functools
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


def deprecated(since: str, instead: str, extra_message: str = "") -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Returns a decorator; each call of the decorated function prints to stderr what to call instead.

    Args:
        since (str): the version since which the function is deprecated.
        instead (str): the replacement.
        extra_message (str): text to add to the message.

    Returns:
        function: the decorator.

    Example:
        from penstock.fluid.annotations import deprecated

        @deprecated(since='1.8', instead='new')
        def old():
            return 1
        assert old() == 1
    """

    def decorator(func: Callable[..., Any]) -> Callable[..., Any]:
        message = f"API {func.__name__} is deprecated since {since}. Please use {instead} instead."
        if extra_message:
            message += "\n" + extra_message

        @functools.wraps(func)
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            print(message, file=sys.stderr)
            return func(*args, **kwargs)

        wrapper.__doc__ = f"{func.__doc__ or ''}\n    {message}"
        return wrapper

    return decorator
