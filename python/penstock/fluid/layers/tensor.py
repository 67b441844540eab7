"""Creating, casting and joining tensors."""

# Written by tools/dev/gen_names.py.
from penstock._src.names import facade

if facade.TYPE_CHECKING:
    from penstock._src.ir.variable import Variable as Variable
    from penstock._src.layers.creation import arange as arange, create_global_var as create_global_var
    from penstock._src.layers.creation import create_parameter as create_parameter, create_tensor as create_tensor
    from penstock._src.layers.creation import fill_constant_batch_size_like as fill_constant_batch_size_like
    from penstock._src.layers.creation import full as full, full_like as full_like, linspace as linspace
    from penstock._src.layers.creation import ones_like as ones_like, zeros_like as zeros_like
    from penstock._src.layers.helper import LayerHelper as LayerHelper
    from penstock._src.layers.linalg import diag as diag, eye as eye, kron as kron, trace as trace, tril as tril
    from penstock._src.layers.linalg import triu as triu
    from penstock._src.layers.random import gaussian_random as gaussian_random, uniform_random as uniform_random
    from penstock._src.layers.save_load import load_combine as load_combine, save as save
    from penstock._src.layers.save_load import save_combine as save_combine
    from penstock._src.layers.search import argmax as argmax, argmin as argmin, argsort as argsort
    from penstock._src.layers.search import has_inf as has_inf, has_nan as has_nan, isfinite as isfinite
    from penstock._src.layers.slicing import reverse as reverse
    from penstock._src.layers.tensor import assign as assign, cast as cast, concat as concat
    from penstock._src.layers.tensor import fill_constant as fill_constant, ones as ones, range as range, sum as sum
    from penstock._src.layers.tensor import sums as sums, zeros as zeros
    from penstock._src.layers.tensor_array import tensor_array_to_tensor as tensor_array_to_tensor
    from penstock._src.parameters.initializer import Constant as Constant
    from penstock._src.parameters.param_attr import ParamAttr as ParamAttr

__all__ = [
    'arange', 'argmax', 'argmin', 'argsort', 'assign', 'cast', 'concat', 'create_global_var', 'create_parameter',
    'create_tensor', 'diag', 'eye', 'fill_constant', 'fill_constant_batch_size_like', 'full', 'full_like',
    'gaussian_random', 'has_inf', 'has_nan', 'isfinite', 'kron', 'linspace', 'ones', 'ones_like', 'range', 'reverse',
    'sum', 'sums', 'tensor_array_to_tensor', 'trace', 'tril', 'triu', 'uniform_random', 'zeros', 'zeros_like',
]

facade.make(__name__)
