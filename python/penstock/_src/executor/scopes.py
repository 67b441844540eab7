"""The global scope: the variables of programs that run without a scope of their own."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from penstock._penstock import Scope
from penstock._src.base.errors import program_error

if TYPE_CHECKING:
    from collections.abc import Iterator


_scope = Scope()


def global_scope() -> Scope:
    """Returns the scope in which programs run by default.

    Returns:
        Scope: variables by name.

    Example:
        fluid.global_scope().var('x').get_tensor().set(np.ones((2, 3), 'float32'), fluid.CPUPlace())
    """
    return _scope


@contextlib.contextmanager
def scope_guard(scope: Scope) -> Iterator[None]:
    """Makes another scope the global one inside a with statement.

    Args:
        scope (Scope): the scope.

    Returns:
        A context manager.

    Raises:
        TypeError: (on entry) `scope` is not a Scope.

    Example:
        with fluid.scope_guard(fluid.Scope()):
            assert fluid.global_scope().find_var('x') is None
    """
    global _scope
    require_scope("scope_guard takes", scope)
    outer, _scope = _scope, scope
    try:
        yield
    finally:
        _scope = outer


def require_scope(rule: str, scope: Scope) -> Scope:
    if not isinstance(scope, Scope):
        raise program_error(
            "E-argument-type",
            f"{rule} a Scope, not {('None' if scope is None else f'an object of type {type(scope).__name__}')}",
        )
    return scope
