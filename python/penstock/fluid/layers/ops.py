"""Layers of one input and one output; those without attributes of their own are made from a list of op types."""

from penstock.fluid._not_built import getattr_of
from penstock.fluid.layer_helper import LayerHelper

__all__ = [
    'abs', 'atan', 'ceil', 'cos', 'exp', 'floor', 'log', 'logsigmoid', 'reciprocal', 'relu', 'round', 'rsqrt',
    'sigmoid', 'sign', 'sin', 'softplus', 'softsign', 'sqrt', 'square', 'tanh', 'tanh_shrink',
]


def _unary(op_type):

    def layer(x, name=None):
        helper = LayerHelper(op_type, name=name).takes(x=x)
        out = helper.create_variable_for_type_inference(x.dtype)
        helper.append_op(op_type, {'X': x}, {'Out': out})
        return out

    layer.__name__ = op_type
    layer.__doc__ = 'The op %s of x, element by element.' % op_type
    return layer


for _type in __all__:
    globals()[_type] = _unary(_type)

__all__ += ['cumsum', 'gelu']


def gelu(x, approximate=False):
    """x times the share of a normal distribution below it."""
    helper = LayerHelper('gelu').takes(x=x)
    out = helper.create_variable_for_type_inference(x.dtype)
    helper.append_op('gelu', {'X': x}, {'Out': out}, {'approximate': approximate})
    return out


def cumsum(x, axis=None, exclusive=None, reverse=None):
    """Running sums along `axis`, by default the last."""
    attrs = {'axis': axis, 'exclusive': exclusive, 'reverse': reverse}
    attrs = {name: value for name, value in attrs.items() if value is not None}
    helper = LayerHelper('cumsum').takes(x=x)
    out = helper.create_variable_for_type_inference(x.dtype)
    helper.append_op('cumsum', {'X': x}, {'Out': out}, attrs)
    return out


__getattr__ = getattr_of(__name__)
