"""fluid.contrib.slim, which is not part of Penstock: it can be imported, but any use raises an error."""

# Written by tools/dev/gen_names.py.
from penstock._src.names import facade

if facade.TYPE_CHECKING:
    from penstock._src.contrib.slim import __path__ as __path__

__all__ = []

facade.make(__name__)
