"""Layers with one input and one output; those without attributes are generated from a table of op types."""

# Written by tools/dev/gen_names.py.
from penstock._src.names import facade

if facade.TYPE_CHECKING:
    from penstock._src.layers.op_layers import generate_layer_fn as generate_layer_fn
    from penstock._src.layers.unary import abs as abs, acos as acos, asin as asin, atan as atan, ceil as ceil
    from penstock._src.layers.unary import cos as cos, cumsum as cumsum, erf as erf, exp as exp, floor as floor
    from penstock._src.layers.unary import gelu as gelu, hard_shrink as hard_shrink, log as log
    from penstock._src.layers.unary import logsigmoid as logsigmoid, reciprocal as reciprocal, relu as relu
    from penstock._src.layers.unary import round as round, rsqrt as rsqrt, sigmoid as sigmoid, sign as sign
    from penstock._src.layers.unary import sin as sin, softplus as softplus, softshrink as softshrink
    from penstock._src.layers.unary import softsign as softsign, sqrt as sqrt, square as square, tanh as tanh
    from penstock._src.layers.unary import tanh_shrink as tanh_shrink, thresholded_relu as thresholded_relu

__all__ = [
    'abs', 'acos', 'asin', 'atan', 'ceil', 'cos', 'cumsum', 'erf', 'exp', 'floor', 'gelu', 'hard_shrink', 'log',
    'logsigmoid', 'reciprocal', 'relu', 'round', 'rsqrt', 'sigmoid', 'sign', 'sin', 'softplus', 'softshrink',
    'softsign', 'sqrt', 'square', 'tanh', 'tanh_shrink', 'thresholded_relu',
]

facade.make(__name__)
