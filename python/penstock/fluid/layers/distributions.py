"""Probability distributions, with layers that compute samples, densities, entropies and divergences.

Expressions are evaluated in Fluid's order, and as often as in Fluid, so that programs have the same ops and names.
"""

# Written by tools/dev/gen_names.py.
from penstock._src.names import facade

if facade.TYPE_CHECKING:
    from penstock._src.ir.variable import Variable as Variable
    from penstock._src.layers.arithmetic import elementwise_pow as elementwise_pow, reduce_max as reduce_max
    from penstock._src.layers.arithmetic import reduce_prod as reduce_prod, reduce_sum as reduce_sum
    from penstock._src.layers.comparison import less_than as less_than
    from penstock._src.layers.creation import create_tensor as create_tensor
    from penstock._src.layers.creation import fill_constant_batch_size_like as fill_constant_batch_size_like
    from penstock._src.layers.distributions import Categorical, Distribution as Distribution, Normal, Uniform
    from penstock._src.layers.linalg import diag as diag
    from penstock._src.layers.multivariate_normal import MultivariateNormalDiag
    from penstock._src.layers.nn import matmul as matmul
    from penstock._src.layers.random import gaussian_random as gaussian_random, uniform_random as uniform_random
    from penstock._src.layers.random import uniform_random_batch_size_like as uniform_random_batch_size_like
    from penstock._src.layers.reshaping import reshape as reshape
    from penstock._src.layers.slicing import shape as shape_layer
    from penstock._src.layers.tensor import assign as assign, cast as cast, ones as ones, zeros as zeros
    from penstock._src.layers.unary import exp as exp, log as log

__all__ = ['Categorical', 'MultivariateNormalDiag', 'Normal', 'Uniform']

facade.make(__name__)
