"""Fluid's imperative mode, which is not part of Penstock: Penstock builds programs and runs them.

Its names can be imported, because scripts import them beside those for programs; a use of one raises an error.
"""

# Written by tools/dev/gen_names.py.
from penstock._src.imperative.package import (
    Env as Env, ParallelEnv as ParallelEnv, disable_dygraph as disable_dygraph,
    disable_imperative as disable_imperative, enable_dygraph as enable_dygraph,
    enable_imperative as enable_imperative, enabled as enabled,
)
from penstock._src.names import facade

if not facade.TYPE_CHECKING:
    from penstock._src.imperative.package import __getattr__ as __getattr__

__all__ = [
    'Env', 'ParallelEnv', 'disable_dygraph', 'disable_imperative', 'enable_dygraph', 'enable_imperative', 'enabled',
]

facade.make(__name__)
