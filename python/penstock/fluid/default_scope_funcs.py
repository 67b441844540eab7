"""A stack of scopes for each thread."""

import threading

from penstock.fluid.core import Scope

__all__ = ['enter_local_scope', 'find_var', 'get_cur_scope', 'leave_local_scope', 'scoped_function', 'var']

_of_thread = threading.local()


def _stack():
    if not getattr(_of_thread, 'scopes', None):
        _of_thread.scopes = [Scope()]
    return _of_thread.scopes


def get_cur_scope():
    """Returns the innermost scope of this thread; the first call makes one."""
    return _stack()[-1]


def enter_local_scope():
    """Makes a child of the current scope the current one."""
    _stack().append(get_cur_scope().new_scope())


def leave_local_scope():
    """Makes the parent of the current scope the current one.

    Raises:
        RuntimeError: if there is none.
    """
    if len(_stack()) == 1:
        raise RuntimeError('leave_local_scope: no scope has been entered')
    _stack().pop()


def var(name):
    """Returns the variable `name` of the current scope, which is made if it is not there."""
    return get_cur_scope().var(name)


def find_var(name):
    """Returns the variable `name` of the current scope or of one around it; None if there is none."""
    return get_cur_scope().find_var(name)


def scoped_function(func):
    """Calls `func` in a scope of its own.

    Args:
        func: takes no arguments.

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
