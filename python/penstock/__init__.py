"""Penstock: programs of one machine, rewritten for trainers and parameter servers, proved, and run.

import penstock.fluid as fluid       # the API of Fluid 1.8
roles = penstock.transpile(...)      # the native call: values in, values out; transpile_ranks without pservers
"""

from penstock._penstock import DataError, EOFException, InternalError, PeerError, ProgramError, StateError, __version__

__all__ = [
    "DataError",
    "EOFException",
    "InternalError",
    "PeerError",
    "ProgramError",
    "ProgramWarning",
    "Role",
    "RoleSet",
    "StateError",
    "__version__",
    "resume_step",
    "transpile",
    "transpile_ranks",
]

TYPE_CHECKING = False  # for type checkers; typing costs more than the rest of the import
if TYPE_CHECKING:
    from penstock._src.executor.resume import resume_step as resume_step
    from penstock._src.transpile.pservers import transpile as transpile
    from penstock._src.transpile.ranks import transpile_ranks as transpile_ranks
    from penstock._src.transpile.role_set import ProgramWarning as ProgramWarning
    from penstock._src.transpile.role_set import Role as Role
    from penstock._src.transpile.role_set import RoleSet as RoleSet

# Names that are loaded when they are first used, because they load the whole package, and their modules.
_LOADED_LATER = {
    "ProgramWarning": "penstock._src.transpile.role_set",
    "Role": "penstock._src.transpile.role_set",
    "RoleSet": "penstock._src.transpile.role_set",
    "resume_step": "penstock._src.executor.resume",
    "transpile": "penstock._src.transpile.pservers",
    "transpile_ranks": "penstock._src.transpile.ranks",
}


if not TYPE_CHECKING:  # which would accept any name

    def __getattr__(name):
        if name not in _LOADED_LATER:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from penstock._src.names import facade

        globals()[name] = facade.load(_LOADED_LATER[name], name)
        return globals()[name]


def __dir__() -> "list[str]":
    return sorted({*globals(), *_LOADED_LATER})


del TYPE_CHECKING
