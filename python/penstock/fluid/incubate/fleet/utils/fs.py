"""File systems with Fluid's interface."""

# Written by tools/dev/gen_names.py.
from penstock._src.names import facade

if facade.TYPE_CHECKING:
    from penstock._src.fleet.fs import BDFS, FS, LocalFS

__all__ = ['BDFS', 'FS', 'LocalFS']

facade.make(__name__)
