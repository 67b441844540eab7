"""Fleet: jobs of several roles from one script; and generators of MultiSlot text."""

from penstock.fluid.incubate import data_generator, fleet

__all__ = ['data_generator', 'fleet']
