"""Metrics computed by ops."""

# Written by tools/dev/gen_names.py.
from penstock._src.names import facade

if facade.TYPE_CHECKING:
    from penstock._src.layers.helper import LayerHelper as LayerHelper
    from penstock._src.layers.metric import accuracy, auc
    from penstock._src.parameters.initializer import Constant as Constant

__all__ = ['accuracy', 'auc']

facade.make(__name__)
