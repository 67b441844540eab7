"""Fluid's imperative mode, which is not part of Penstock: Penstock builds programs and runs them.

Its names can be imported, because scripts import them beside those for programs; a use of one raises an error.
"""

# Written by tools/dev/gen_names.py.
from penstock._src.names import facade

if facade.TYPE_CHECKING:
    from penstock._src.imperative.package import Env as Env, ParallelEnv as ParallelEnv
    from penstock._src.imperative.package import disable_dygraph as disable_dygraph
    from penstock._src.imperative.package import disable_imperative as disable_imperative
    from penstock._src.imperative.package import enable_dygraph as enable_dygraph
    from penstock._src.imperative.package import enable_imperative as enable_imperative, enabled as enabled

__all__ = [
    'Env', 'ParallelEnv', 'disable_dygraph', 'disable_imperative', 'enable_dygraph', 'enable_imperative', 'enabled',
]

facade.make(__name__)
