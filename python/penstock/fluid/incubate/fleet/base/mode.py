"""The implementations of Fleet."""

# Written by tools/dev/gen_names.py.
from penstock._src.names import facade

if facade.TYPE_CHECKING:
    from penstock._src.fleet.mode import Mode

__all__ = ['Mode']

facade.make(__name__)
