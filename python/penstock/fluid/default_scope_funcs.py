"""A stack of scopes for each thread."""

# Written by tools/dev/gen_names.py.
from penstock._src.names import facade

if facade.TYPE_CHECKING:
    from penstock._src.executor.scope_functions import enter_local_scope, find_var, get_cur_scope, leave_local_scope
    from penstock._src.executor.scope_functions import scoped_function, var

__all__ = ['enter_local_scope', 'find_var', 'get_cur_scope', 'leave_local_scope', 'scoped_function', 'var']

facade.make(__name__)
