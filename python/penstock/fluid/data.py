"""fluid.data declares a variable that the caller feeds. An extent of None is known at run time."""

# Written by tools/dev/gen_names.py.
from penstock._src.names import facade

if facade.TYPE_CHECKING:
    from penstock._src.layers.helper import LayerHelper as LayerHelper
    from penstock._src.layers.placeholder import data

__all__ = ['data']

facade.make(__name__)
