"""LayerHelperBase: names, parameters and temporaries of a layer, without its arguments."""

# Written by tools/dev/gen_names.py.
from penstock._src.names import facade

if facade.TYPE_CHECKING:
    from penstock._src.layers.helper_base import LayerHelperBase
    from penstock._src.parameters.param_attr import ParamAttr as ParamAttr, WeightNormParamAttr as WeightNormParamAttr

__all__ = ['LayerHelperBase']

facade.make(__name__)
