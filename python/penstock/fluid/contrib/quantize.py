"""fluid.contrib.quantize, which is not part of Penstock: it can be imported, but any use raises an error."""

# Written by tools/dev/gen_names.py.
from penstock._src.names import facade

if facade.TYPE_CHECKING:
    from penstock._src.contrib.quantize import QuantizeTranspiler, __path__ as __path__

__all__ = ['QuantizeTranspiler']

facade.make(__name__)
