"""fluid.embedding and fluid.one_hot: rows of a table and one-hot rows, for ids of any shape."""

# Written by tools/dev/gen_names.py.
from penstock._src.names import facade

if facade.TYPE_CHECKING:
    from penstock._src.ir.variable import Variable as Variable
    from penstock._src.layers.helper import LayerHelper as LayerHelper
    from penstock._src.layers.input import embedding, one_hot

__all__ = ['embedding', 'one_hot']

facade.make(__name__)
