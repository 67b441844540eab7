"""Sums over all batches from which metrics of a click model are computed."""

# Written by tools/dev/gen_names.py.
from penstock._src.names import facade

if facade.TYPE_CHECKING:
    from penstock._src.contrib.metric import ctr_metric_bundle
    from penstock._src.layers.helper import LayerHelper as LayerHelper
    from penstock._src.parameters.initializer import Constant as Constant

__all__ = ['ctr_metric_bundle']

facade.make(__name__)
