"""Penstock: programs of one machine, rewritten for trainers and parameter servers, proved, and run.

    import penstock.fluid as fluid       # the API of Fluid 1.8
    roles = penstock.transpile(...)      # the native call: values in, values out
"""

from penstock._penstock import InternalError, PeerError, ProgramError, StateError, __version__
from penstock._transpile import Role, RoleSet, transpile

__all__ = ['InternalError', 'PeerError', 'ProgramError', 'Role', 'RoleSet', 'StateError', '__version__', 'transpile']
