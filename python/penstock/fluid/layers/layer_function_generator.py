"""Generates layers from op types, as Fluid generates its simplest layers."""

# Written by tools/dev/gen_names.py.
from penstock._src.layers.layer_function_generator import (
    autodoc as autodoc, deprecated as deprecated, generate_activation_fn as generate_activation_fn,
    templatedoc as templatedoc,
)
from penstock._src.layers.op_layers import generate_layer_fn as generate_layer_fn
from penstock._src.layers.unary import (
    abs as abs, acos as acos, asin as asin, atan as atan, ceil as ceil, cos as cos, exp as exp, floor as floor,
    logsigmoid as logsigmoid, reciprocal as reciprocal, round as round, rsqrt as rsqrt, sigmoid as sigmoid,
    sin as sin, softplus as softplus, softsign as softsign, sqrt as sqrt, square as square, tanh as tanh,
    tanh_shrink as tanh_shrink,
)
from penstock._src.names import facade

__all__ = [
    'abs', 'acos', 'asin', 'atan', 'autodoc', 'ceil', 'cos', 'deprecated', 'exp', 'floor', 'generate_activation_fn',
    'generate_layer_fn', 'logsigmoid', 'reciprocal', 'round', 'rsqrt', 'sigmoid', 'sin', 'softplus', 'softsign',
    'sqrt', 'square', 'tanh', 'tanh_shrink', 'templatedoc',
]

facade.make(__name__, elsewhere=(
    'abs', 'acos', 'asin', 'atan', 'ceil', 'cos', 'exp', 'floor', 'logsigmoid', 'reciprocal', 'round', 'rsqrt',
    'sigmoid', 'sin', 'softplus', 'softsign', 'sqrt', 'square', 'tanh', 'tanh_shrink',
))
