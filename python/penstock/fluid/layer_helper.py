"""LayerHelper: the functions that all layers share: names, parameters, temporaries, bias and activation."""

# Written by tools/dev/gen_names.py.
from penstock._src.names import facade

if facade.TYPE_CHECKING:
    from penstock._src.layers.helper import LayerHelper, describe as describe, require_name as require_name
    from penstock._src.layers.helper import require_variables as require_variables
    from penstock._src.layers.helper_base import LayerHelperBase as LayerHelperBase
    from penstock._src.parameters.initializer import Constant as Constant
    from penstock._src.parameters.param_attr import ParamAttr as ParamAttr
    from penstock.fluid import unique_name as unique_name

__all__ = ['LayerHelper']

facade.make(__name__)
