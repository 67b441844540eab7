"""Creating, casting and joining tensors."""

# Written by tools/dev/gen_names.py.
from penstock._src.names import facade

if facade.TYPE_CHECKING:
    from penstock._src.ir.variable import Variable as Variable
    from penstock._src.layers.creation import arange, create_global_var, create_parameter, create_tensor
    from penstock._src.layers.creation import fill_constant_batch_size_like, full, full_like, linspace, ones_like
    from penstock._src.layers.creation import zeros_like
    from penstock._src.layers.helper import LayerHelper as LayerHelper
    from penstock._src.layers.linalg import diag, eye, kron, trace, tril, triu
    from penstock._src.layers.random import gaussian_random, uniform_random
    from penstock._src.layers.save_load import load_combine as load_combine, save as save
    from penstock._src.layers.save_load import save_combine as save_combine
    from penstock._src.layers.search import argmax, argmin, argsort, has_inf, has_nan, isfinite
    from penstock._src.layers.slicing import reverse
    from penstock._src.layers.tensor import assign, cast, concat, fill_constant, ones, range, sum, sums, zeros
    from penstock._src.layers.tensor_array import tensor_array_to_tensor
    from penstock._src.parameters.initializer import Constant as Constant
    from penstock._src.parameters.param_attr import ParamAttr as ParamAttr

__all__ = [
    'arange', 'argmax', 'argmin', 'argsort', 'assign', 'cast', 'concat', 'create_global_var', 'create_parameter',
    'create_tensor', 'diag', 'eye', 'fill_constant', 'fill_constant_batch_size_like', 'full', 'full_like',
    'gaussian_random', 'has_inf', 'has_nan', 'isfinite', 'kron', 'linspace', 'ones', 'ones_like', 'range', 'reverse',
    'sum', 'sums', 'tensor_array_to_tensor', 'trace', 'tril', 'triu', 'uniform_random', 'zeros', 'zeros_like',
]

facade.make(__name__)
