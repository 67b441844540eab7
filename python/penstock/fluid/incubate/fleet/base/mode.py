"""The implementations of Fleet."""

# Written by tools/dev/gen_names.py.
from penstock._src.fleet.mode import Mode as Mode
from penstock._src.names import facade

__all__ = ['Mode']

facade.make(__name__)
