"""Gives a function the arguments of another one, to which it passes them on.

    class Doubled(Optimizer):
        @arguments_of(Optimizer.minimize)
        def minimize(self, loss, *rest, **named):
            return super().minimize(loss * 2.0, *rest, **named)

`inspect.signature`, `help`, the documentation and type checkers see the arguments of Optimizer.minimize.
"""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any, Callable, TypeVar

if TYPE_CHECKING:
    from typing import Concatenate, ParamSpec

    P = ParamSpec("P")

S = TypeVar("S")
R = TypeVar("R")


def arguments_of(
    source: Callable[Concatenate[Any, P], Any],
) -> Callable[[Callable[Concatenate[S, ...], R]], Callable[Concatenate[S, P], R]]:
    """Returns a decorator of methods: the method gets the arguments of the method `source`, and keeps its own result.

    Args:
        source (function): the method whose arguments are shown; the decorated one must accept them.
    """
    shown = inspect.signature(source)
    types = {name: kind for name, kind in source.__annotations__.items() if name != "return"}

    def declare(method: Callable[Concatenate[S, ...], R]) -> Callable[Concatenate[S, P], R]:
        result = method.__annotations__["return"]
        vars(method)["__signature__"] = shown.replace(return_annotation=result)
        method.__annotations__ = dict(types, **{"return": result})
        return method

    return declare
