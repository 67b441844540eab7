"""Fleets with pservers."""

# Written by tools/dev/gen_names.py.
from penstock._src.names import facade

if facade.TYPE_CHECKING:
    from penstock.fluid.incubate.fleet.parameter_server import version as version

__all__ = []

facade.make(__name__)
