"""A stack of scopes for each thread."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from penstock._penstock import Scope
from penstock._src.base.errors import state_error

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from penstock._penstock import RuntimeVariable


class _OfThread(threading.local):
    scopes: list[Scope] = []


_of_thread = _OfThread()


def _stack() -> list[Scope]:
    if not _of_thread.scopes:
        _of_thread.scopes = [Scope()]
    return _of_thread.scopes


def get_cur_scope() -> Scope:
    """Returns the innermost scope of this thread; the first call creates one.

    Returns:
        Scope: the scope.

    Example:
        from penstock.fluid import default_scope_funcs as scopes
        scopes.get_cur_scope().var('a')
        assert scopes.find_var('a') is not None
    """
    return _stack()[-1]


def enter_local_scope() -> None:
    """Creates a child of the current scope and makes it the current scope.

    Example:
        from penstock.fluid import default_scope_funcs as scopes
        scopes.enter_local_scope()
        scopes.var('inside')
        scopes.leave_local_scope()
        assert scopes.find_var('inside') is None
    """
    _stack().append(get_cur_scope().new_scope())


def leave_local_scope() -> None:
    """Makes the parent of the current scope the current scope.

    Raises:
        RuntimeError: no scope has been entered.

    Example:
        from penstock.fluid import default_scope_funcs as scopes
        scopes.enter_local_scope()
        scopes.leave_local_scope()
    """
    if len(_stack()) == 1:
        raise state_error("E-scope-leave", "leave_local_scope: no scope has been entered")
    _stack().pop()


def var(name: str) -> RuntimeVariable:
    """Returns a variable of the current scope; creates it if it does not exist.

    Args:
        name (str): its name.

    Returns:
        Variable: the variable of the scope.

    Example:
        from penstock.fluid import default_scope_funcs as scopes
        scopes.var('b').get_tensor().set(np.ones(2, 'float32'), fluid.CPUPlace())
    """
    return get_cur_scope().var(name)


def find_var(name: str) -> RuntimeVariable | None:
    """Finds a variable of the current scope or of an enclosing one.

    Args:
        name (str): its name.

    Returns:
        Variable: the variable of the scope, or None.

    Example:
        from penstock.fluid import default_scope_funcs as scopes
        assert scopes.find_var('never made') is None
    """
    return get_cur_scope().find_var(name)


def scoped_function(func: Callable[..., Any]) -> None:
    """Calls `func` in a new scope.

    Args:
        func (callable): takes no arguments.

    Example:
        from penstock.fluid import default_scope_funcs as scopes
        scopes.scoped_function(lambda: scopes.var('inside'))
        assert scopes.find_var('inside') is None
    """
    enter_local_scope()
    try:
        func()
    finally:
        leave_local_scope()
