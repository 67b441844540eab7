"""Generates layers from op types, as Fluid generates its simplest layers."""

# Written by tools/dev/gen_names.py.
from penstock._src.names import facade

if facade.TYPE_CHECKING:
    from penstock._src.layers.layer_function_generator import autodoc as autodoc, deprecated as deprecated
    from penstock._src.layers.layer_function_generator import generate_activation_fn as generate_activation_fn
    from penstock._src.layers.layer_function_generator import templatedoc as templatedoc
    from penstock._src.layers.op_layers import generate_layer_fn as generate_layer_fn
    from penstock._src.layers.unary import abs as abs, acos as acos, asin as asin, atan as atan, ceil as ceil
    from penstock._src.layers.unary import cos as cos, exp as exp, floor as floor, logsigmoid as logsigmoid
    from penstock._src.layers.unary import reciprocal as reciprocal, round as round, rsqrt as rsqrt
    from penstock._src.layers.unary import sigmoid as sigmoid, sin as sin, softplus as softplus, softsign as softsign
    from penstock._src.layers.unary import sqrt as sqrt, square as square, tanh as tanh, tanh_shrink as tanh_shrink

__all__ = [
    'abs', 'acos', 'asin', 'atan', 'autodoc', 'ceil', 'cos', 'deprecated', 'exp', 'floor', 'generate_activation_fn',
    'generate_layer_fn', 'logsigmoid', 'reciprocal', 'round', 'rsqrt', 'sigmoid', 'sin', 'softplus', 'softsign',
    'sqrt', 'square', 'tanh', 'tanh_shrink', 'templatedoc',
]

facade.make(__name__)
