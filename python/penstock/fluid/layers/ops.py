"""Layers with one input and one output; those without attributes are generated from a table of op types."""

# Written by tools/dev/gen_names.py.
from penstock._src.names import facade

if facade.TYPE_CHECKING:
    from penstock._src.layers.op_layers import generate_layer_fn as generate_layer_fn
    from penstock._src.layers.unary import abs, acos, asin, atan, ceil, cos, cumsum, erf, exp, floor, gelu
    from penstock._src.layers.unary import hard_shrink, log, logsigmoid, reciprocal, relu, round, rsqrt, sigmoid
    from penstock._src.layers.unary import sign, sin, softplus, softshrink, softsign, sqrt, square, tanh, tanh_shrink
    from penstock._src.layers.unary import thresholded_relu

__all__ = [
    'abs', 'acos', 'asin', 'atan', 'ceil', 'cos', 'cumsum', 'erf', 'exp', 'floor', 'gelu', 'hard_shrink', 'log',
    'logsigmoid', 'reciprocal', 'relu', 'round', 'rsqrt', 'sigmoid', 'sign', 'sin', 'softplus', 'softshrink',
    'softsign', 'sqrt', 'square', 'tanh', 'tanh_shrink', 'thresholded_relu',
]

facade.make(__name__)
