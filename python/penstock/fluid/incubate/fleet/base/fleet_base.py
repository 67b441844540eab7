"""Fleet and DistributedOptimizer: the interface of every kind of fleet."""

# Written by tools/dev/gen_names.py.
from penstock._src.names import facade

if facade.TYPE_CHECKING:
    from penstock._src.fleet.base import DistributedOptimizer, Fleet, part_of as part_of
    from penstock.fluid.incubate.fleet.base.mode import Mode
    from penstock.fluid.incubate.fleet.base.role_maker import RoleMakerBase as RoleMakerBase

__all__ = ['DistributedOptimizer', 'Fleet', 'Mode']

facade.make(__name__)
