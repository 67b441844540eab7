"""ParamAttr, which describes how a layer's parameter is named, initialised and trained."""

# Written by tools/dev/gen_names.py.
from penstock._src.names import facade

if facade.TYPE_CHECKING:
    from penstock._src.parameters.initializer import Constant as Constant, Initializer as Initializer
    from penstock._src.parameters.initializer import Xavier as Xavier
    from penstock._src.parameters.param_attr import ParamAttr, WeightNormParamAttr
    from penstock._src.parameters.regularizer import WeightDecayRegularizer as WeightDecayRegularizer

__all__ = ['ParamAttr', 'WeightNormParamAttr']

facade.make(__name__)
