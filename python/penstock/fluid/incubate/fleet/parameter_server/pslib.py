"""Fluid's fleet based on pslib, a library that is not public: any use raises an error that says so."""

# Written by tools/dev/gen_names.py.
from penstock._src.names import facade

if not facade.TYPE_CHECKING:
    from penstock._src.fleet.pslib import __getattr__ as __getattr__

__all__ = []

facade.make(__name__)
