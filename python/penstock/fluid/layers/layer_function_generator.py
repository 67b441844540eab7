"""Generates layers from op types, as Fluid generates its simplest layers."""

# Written by tools/dev/gen_names.py.
from penstock._src.names import facade

if facade.TYPE_CHECKING:
    from penstock._src.layers.layer_function_generator import autodoc, deprecated, generate_activation_fn, templatedoc
    from penstock._src.layers.op_layers import generate_layer_fn
    from penstock._src.layers.unary import abs, acos, asin, atan, ceil, cos, exp, floor, logsigmoid, reciprocal
    from penstock._src.layers.unary import round, rsqrt, sigmoid, sin, softplus, softsign, sqrt, square, tanh
    from penstock._src.layers.unary import tanh_shrink

__all__ = [
    'abs', 'acos', 'asin', 'atan', 'autodoc', 'ceil', 'cos', 'deprecated', 'exp', 'floor', 'generate_activation_fn',
    'generate_layer_fn', 'logsigmoid', 'reciprocal', 'round', 'rsqrt', 'sigmoid', 'sin', 'softplus', 'softsign',
    'sqrt', 'square', 'tanh', 'tanh_shrink', 'templatedoc',
]

facade.make(__name__)
