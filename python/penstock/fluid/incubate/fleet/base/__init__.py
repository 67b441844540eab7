"""The parts that all kinds of fleets share: roles and the interface."""

# Written by tools/dev/gen_names.py.
from penstock._src.names import facade

if facade.TYPE_CHECKING:
    from penstock.fluid.incubate.fleet.base import fleet_base as fleet_base, mode as mode, role_maker as role_maker

__all__ = []

facade.make(__name__)
