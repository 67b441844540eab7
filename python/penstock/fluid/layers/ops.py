"""Layers of one input and one output; those without attributes of their own are made from a list of op types."""

from penstock.fluid._not_built import getattr_of
from penstock.fluid.layer_helper import LayerHelper

_FORMULAS = {
    'abs': '|x|',
    'atan': 'the arc tangent of x',
    'ceil': 'the smallest integer that is at least x',
    'cos': 'the cosine of x',
    'exp': 'e ** x',
    'floor': 'the largest integer that is at most x',
    'log': 'the natural logarithm of x',
    'logsigmoid': 'log(1 / (1 + exp(-x)))',
    'reciprocal': '1 / x',
    'relu': 'max(x, 0)',
    'round': 'the integer nearest to x, halves away from 0',
    'rsqrt': '1 / sqrt(x)',
    'sigmoid': '1 / (1 + exp(-x))',
    'sign': '-1, 0 or 1 as x is below, equal to or above 0',
    'sin': 'the sine of x',
    'softplus': 'log(1 + exp(x))',
    'softsign': 'x / (1 + |x|)',
    'sqrt': 'the square root of x',
    'square': 'x ** 2',
    'tanh': 'the hyperbolic tangent of x',
    'tanh_shrink': 'x - tanh(x)',
}
__all__ = list(_FORMULAS)

_DOC = """Computes {formula}, element by element.

Args:
    x (Variable): any shape, float32 or float64.
    name (str | None): prefix of the names of what the layer creates.

Returns:
    Variable: the shape and type of `x`.

Example:
    x = fluid.data('x', [None, 4])
    y = fluid.layers.{op}(x)
"""


def _unary(op_type):

    def layer(x, name=None):
        helper = LayerHelper(op_type, name=name).takes(x=x)
        out = helper.create_variable_for_type_inference(x.dtype)
        helper.append_op(op_type, {'X': x}, {'Out': out})
        return out

    layer.__name__ = op_type
    layer.__doc__ = _DOC.format(op=op_type, formula=_FORMULAS[op_type])
    return layer


for _type in _FORMULAS:
    globals()[_type] = _unary(_type)

__all__ += ['cumsum', 'gelu']


def gelu(x, approximate=False):
    """Computes x times the standard normal distribution function of x, element by element.

    Args:
        x (Variable): any shape, float32 or float64.
        approximate (bool): use the tanh approximation of the distribution function.

    Returns:
        Variable: the shape and type of `x`.

    Example:
        x = fluid.data('x', [None, 4])
        y = fluid.layers.gelu(x)

    Reference:
        Hendrycks and Gimpel, Gaussian Error Linear Units, arXiv:1606.08415.
    """
    helper = LayerHelper('gelu').takes(x=x)
    out = helper.create_variable_for_type_inference(x.dtype)
    helper.append_op('gelu', {'X': x}, {'Out': out}, {'approximate': approximate})
    return out


def cumsum(x, axis=None, exclusive=None, reverse=None):
    """Computes running sums along one axis.

    Args:
        x (Variable): any shape; numbers.
        axis (int | None): the axis; None: the last.
        exclusive (bool | None): leave the element itself out of its sum.
        reverse (bool | None): sum from the end.

    Returns:
        Variable: the shape and type of `x`.

    Example:
        x = fluid.data('x', [None, 4])
        y = fluid.layers.cumsum(x, axis=1)
    """
    attrs = {'axis': axis, 'exclusive': exclusive, 'reverse': reverse}
    attrs = {name: value for name, value in attrs.items() if value is not None}
    helper = LayerHelper('cumsum').takes(x=x)
    out = helper.create_variable_for_type_inference(x.dtype)
    helper.append_op('cumsum', {'X': x}, {'Out': out}, attrs)
    return out


__getattr__ = getattr_of(__name__)
