"""The multivariate normal distribution."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy

from penstock._src.layers.arithmetic import elementwise_pow, reduce_prod, reduce_sum
from penstock._src.layers.distributions import Distribution, constants
from penstock._src.layers.linalg import diag
from penstock._src.layers.nn import matmul
from penstock._src.layers.tensor import ones
from penstock._src.layers.unary import log

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from penstock._src.ir.typing import Array
    from penstock._src.ir.variable import Variable


class MultivariateNormalDiag(Distribution):
    """The multivariate normal distribution with a diagonal covariance matrix.

    Args:
        loc (list, numpy.ndarray or Variable): the means, shape [k].
        scale (list, numpy.ndarray or Variable): the covariance matrix, shape [k, k], which is diagonal; a Variable if
            `loc` is one.

    Raises:
        TypeError: an argument has the wrong type.
        ValueError: only one of the arguments is a Variable.

    Example:
        loc, scale = fluid.data('loc', [2]), fluid.data('scale', [2, 2])
        entropy = fluid.layers.MultivariateNormalDiag(loc, scale).entropy()
    """

    def __init__(self, loc: Sequence[Any] | Array | Variable, scale: Sequence[Any] | Array | Variable) -> None:
        # The shapes differ, so neither argument is broadcast to the shape of the other.
        self._check((numpy.ndarray, list), loc=loc, scale=scale)
        given: tuple[Any, Any] = (loc, scale)
        made: list[Variable] = list(given) if self._has_variables else [constants([one])[0] for one in given]
        self.loc, self.scale = made

    def _diagonal_of_ones(self, value: Variable) -> tuple[Variable, Variable]:
        one_all = ones(shape=list(value.shape), dtype=self.loc.dtype)
        return one_all, diag(ones(shape=[value.shape[0]], dtype=self.loc.dtype))

    def _determinant(self, value: Variable) -> Variable:
        one_all, one_diag = self._diagonal_of_ones(value)
        return reduce_prod(value + one_all - one_diag)

    def _inverse(self, value: Variable) -> Variable:
        one_all, one_diag = self._diagonal_of_ones(value)
        return elementwise_pow(value, one_all - 2 * one_diag)

    def entropy(self) -> Variable:
        """Computes the entropy.

        Returns:
            Variable: shape [1], same type as `loc`.

        Example:
            loc, scale = fluid.data('loc', [2]), fluid.data('scale', [2, 2])
            entropy = fluid.layers.MultivariateNormalDiag(loc, scale).entropy()
        """
        size = self.scale.shape[0]
        entropy: Variable = 0.5 * (size * (1.0 + math.log(2 * math.pi)) + log(self._determinant(self.scale)))
        return entropy

    def kl_divergence(self, other: MultivariateNormalDiag) -> Variable:
        """Computes the Kullback-Leibler divergence to another diagonal normal distribution.

        Args:
            other (MultivariateNormalDiag): the other distribution, over vectors of the same size.

        Returns:
            Variable: shape [1], same type as `loc`.

        Raises:
            TypeError: `other` is not a MultivariateNormalDiag.

        Example:
            a, b = (fluid.layers.MultivariateNormalDiag(fluid.data('loc' + n, [2]), fluid.data('scale' + n, [2, 2]))
                    for n in 'ab')
            apart = a.kl_divergence(b)
        """
        self._require_same(other)
        trace = reduce_sum(self._inverse(other.scale) * self.scale)
        between = matmul(other.loc - self.loc, self._inverse(other.scale))
        between = matmul(between, other.loc - self.loc)
        ratio = log(self._determinant(other.scale)) - log(self._determinant(self.scale))
        divergence: Variable = 0.5 * (trace + between - self.scale.shape[0] + ratio)
        return divergence
