"""Layers of one input and one output without attributes of their own: made from a list of op types."""

from penstock.fluid._not_built import getattr_of
from penstock.fluid.layer_helper import LayerHelper

__all__ = [
    'abs', 'ceil', 'cos', 'exp', 'floor', 'log', 'reciprocal', 'relu', 'round', 'rsqrt', 'sigmoid', 'sign', 'sin',
    'softplus', 'softsign', 'sqrt', 'square', 'tanh',
]


def _unary(op_type):

    def layer(x, name=None):
        helper = LayerHelper(op_type, name=name)
        out = helper.create_variable_for_type_inference(x.dtype)
        helper.append_op(op_type, {'X': x}, {'Out': out})
        return out

    layer.__name__ = op_type
    layer.__doc__ = 'The op %s of x, element by element.' % op_type
    return layer


for _type in __all__:
    globals()[_type] = _unary(_type)


__getattr__ = getattr_of(__name__)
