"""Penstock: programs of one machine, rewritten for trainers and parameter servers, proved, and run.

    import penstock.fluid as fluid       # the API of Fluid 1.8
    roles = penstock.transpile(...)      # the native call: values in, values out; transpile_ranks without pservers
"""

from penstock import _bad_arguments
from penstock._penstock import DataError, EOFException, InternalError, PeerError, ProgramError, StateError, __version__
from penstock._role_set import ProgramWarning, Role, RoleSet
from penstock._transpile import transpile
from penstock._transpile_ranks import transpile_ranks

__all__ = [
    'DataError', 'EOFException', 'InternalError', 'PeerError', 'ProgramError', 'ProgramWarning', 'Role', 'RoleSet',
    'StateError', '__version__', 'transpile', 'transpile_ranks',
]

_bad_arguments.guard_package(__name__)
