"""Fluid's imperative mode, which is not part of Penstock: Penstock builds programs and runs them.

Its names can be imported, because scripts import them beside those for programs; a use of one raises an error.
"""

# Written by tools/dev/gen_names.py.
from penstock._src.names import facade

if facade.TYPE_CHECKING:
    from penstock._src.imperative.package import Env, ParallelEnv, disable_dygraph, disable_imperative
    from penstock._src.imperative.package import enable_dygraph, enable_imperative, enabled

__all__ = [
    'Env', 'ParallelEnv', 'disable_dygraph', 'disable_imperative', 'enable_dygraph', 'enable_imperative', 'enabled',
]

facade.make(__name__)
