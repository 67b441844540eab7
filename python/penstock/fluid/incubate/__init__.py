"""Fleet: jobs of several roles from one script; and generators of MultiSlot text."""

# Written by tools/dev/gen_names.py.
from penstock._src.names import facade

if facade.TYPE_CHECKING:
    from penstock.fluid.incubate import data_generator, fleet

__all__ = ['data_generator', 'fleet']

facade.make(__name__)
