"""Which implementation of Fleet with pservers this is: DistributeTranspiler's."""

# Written by tools/dev/gen_names.py.
from penstock._src.names import facade

if facade.TYPE_CHECKING:
    from penstock._src.fleet.version import BUILD_MODE as BUILD_MODE, is_transpiler
    from penstock.fluid.incubate.fleet.base.mode import Mode as Mode

__all__ = ['is_transpiler']

facade.make(__name__)
