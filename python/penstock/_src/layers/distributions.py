"""Probability distributions, with layers that compute samples, densities, entropies and divergences.

Expressions are evaluated in Fluid's order, and as often as in Fluid, so that programs have the same ops and names.
"""

from __future__ import annotations

import math
import warnings
from typing import TYPE_CHECKING

import numpy

from penstock._src.base.call_site import stack_level
from penstock._src.base.doc_texts import with_texts
from penstock._src.ir.array_conversion import to_array
from penstock._src.ir.variable import Variable
from penstock._src.layers.arithmetic import reduce_max, reduce_sum
from penstock._src.layers.comparison import less_than
from penstock._src.layers.creation import create_tensor, fill_constant_batch_size_like
from penstock._src.layers.helper import require_kind
from penstock._src.layers.random import gaussian_random, uniform_random, uniform_random_batch_size_like
from penstock._src.layers.reshaping import reshape
from penstock._src.layers.slicing import shape as shape_layer
from penstock._src.layers.tensor import assign, cast, zeros
from penstock._src.layers.unary import exp, log

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import Any

    from penstock._src.ir.typing import Array


class Distribution:
    """Base class of distributions; its methods raise an error if a distribution does not override them."""

    def sample(self) -> Variable:
        """Draws samples.

        Raises:
            NotImplementedError: the distribution does not support this method.
        """
        raise NotImplementedError(f"{type(self).__name__} has no sample")

    def entropy(self) -> Variable:
        """Computes the entropy.

        Raises:
            NotImplementedError: the distribution does not support this method.
        """
        raise NotImplementedError(f"{type(self).__name__} has no entropy")

    def kl_divergence(self, other: Any) -> Variable:
        """Computes the Kullback-Leibler divergence to another distribution.

        Args:
            other (Distribution): the other distribution.

        Raises:
            NotImplementedError: the distribution does not support this method.
        """
        raise NotImplementedError(f"{type(self).__name__} has no kl_divergence")

    def log_prob(self, value: Variable) -> Variable:
        """Computes the logarithm of the density at a value.

        Args:
            value (Variable): the points, any shape, float32 or float64.

        Raises:
            NotImplementedError: the distribution does not support this method.
        """
        raise NotImplementedError(f"{type(self).__name__} has no log_prob")

    def _check(self, kinds: tuple[type, ...], **arguments: Any) -> None:
        """Raises unless all arguments are Variables, or all are of one of `kinds`."""
        for name, value in arguments.items():
            if not isinstance(value, kinds + (Variable,)):
                raise TypeError(
                    f"{type(self).__name__}: {name} must be a Variable or one of "
                    f"{', '.join(kind.__name__ for kind in kinds)}, not {type(value).__name__}"
                )
        given = [isinstance(value, Variable) for value in arguments.values()]
        if any(given) and not all(given):
            raise ValueError(f"{type(self).__name__}: if one of {', '.join(arguments)} is a Variable, all must be")
        self._has_variables = all(given)

    def _take(self, kinds: tuple[type, ...], **arguments: Any) -> tuple[Variable, ...]:
        """Returns the arguments as Variables of one shape."""
        self._check(kinds, **arguments)
        self._has_floats = all(isinstance(value, float) for value in arguments.values())
        return tuple(arguments.values()) if self._has_variables else constants(arguments.values())

    def _require_same(self, other: object) -> None:
        if not isinstance(other, type(self)):
            raise TypeError(f"kl_divergence: other must be a {type(self).__name__}, not {type(other).__name__}")


def constants(values: Iterable[Any]) -> tuple[Variable, ...]:
    """Returns the values as float32 Variables, broadcast to a common shape."""
    arrays = [numpy.array([value] if isinstance(value, float) else value) for value in values]
    if any(array.dtype != "float32" for array in arrays):
        warnings.warn("arguments of distributions are converted to float32", stacklevel=stack_level())
    made = []
    for array in numpy.broadcast_arrays(*[to_array(array, "float32", "argument", "distributions") for array in arrays]):
        variable = create_tensor(dtype="float32")
        assign(numpy.array(array), variable)
        made.append(variable)
    return tuple(made)


_SAMPLE = {
    "sample": """Draws samples.

    Args:
        shape (list): shape of the sample, which precedes the shape of the distribution.
        seed (int): seed of the random numbers; 0: different numbers in each run.

    Returns:
        Variable: shape `shape` + the shape of `{first}`, or `shape` if both {parameters} are floats; float32.

    Raises:
        TypeError: an argument has the wrong type.

    Example:
        numbers = fluid.layers.{kind}(0.0, 3.0).sample([4])
    """
}


class _OfTwoParameters(Distribution):
    """A distribution over numbers with two parameters, which are broadcast to a common shape.

    A subclass draws the numbers of its standard form, and shifts and scales them by its parameters.
    """

    _KINDS = (float, numpy.ndarray, list)
    _NAMES = ("", "")  # of the attributes that hold the parameters

    def _sum(self) -> Variable:
        first, second = (getattr(self, name) for name in self._NAMES)
        total: Variable = first + second
        return total

    def _drawn(self, shape: Any, seed: int) -> Variable:
        raise NotImplementedError

    def _drawn_like(self, zero: Variable, seed: int) -> Variable:
        raise NotImplementedError

    def _placed(self, numbers: Variable, zero: Variable) -> Variable:
        raise NotImplementedError

    def _sample(self, shape: Any, seed: int) -> Variable:
        if not isinstance(shape, list):
            raise TypeError(f"sample: shape must be a list, not {shape!r}")
        require_kind("sample", int, seed=seed)
        batch, dtype = list(self._sum().shape), getattr(self, self._NAMES[0]).dtype
        if self._has_variables:
            zero = fill_constant_batch_size_like(self._sum(), batch + shape, dtype, 0.0)
            return reshape(self._placed(self._drawn_like(zero, seed), zero), shape + batch)
        out = self._placed(self._drawn(shape + batch, seed), zeros(shape + batch, dtype=dtype))
        return reshape(out, shape) if self._has_floats else out


class Uniform(_OfTwoParameters):
    """The uniform distribution over [low, high).

    Args:
        low (float, list, numpy.ndarray or Variable): lower bounds, inclusive.
        high (float, list, numpy.ndarray or Variable): upper bounds, exclusive; a Variable if `low` is one.

    Raises:
        TypeError: an argument has the wrong type.
        ValueError: only one of the arguments is a Variable.

    Example:
        u = fluid.layers.Uniform(low=[1.0, 2.0], high=[3.0, 4.0])
        numbers = u.sample([5])     # shape [5, 2]
        entropy = u.entropy()
    """

    _NAMES = ("low", "high")

    def __init__(
        self, low: float | Sequence[Any] | Array | Variable, high: float | Sequence[Any] | Array | Variable
    ) -> None:
        self.low, self.high = self._take(self._KINDS, low=low, high=high)

    @with_texts(_SAMPLE, kind="Uniform", first="low", parameters="bounds")
    def sample(self, shape: Sequence[Any], seed: int = 0) -> Variable:  # type: ignore[override]  # as in Fluid
        """{sample}"""
        return self._sample(shape, seed)

    def _drawn(self, shape: Any, seed: int) -> Variable:
        return uniform_random(shape, min=0.0, max=1.0, seed=seed)

    def _drawn_like(self, zero: Variable, seed: int) -> Variable:
        return uniform_random_batch_size_like(zero, zero.shape, min=0.0, max=1.0, seed=seed)

    def _placed(self, numbers: Variable, zero: Variable) -> Variable:
        width = zero + self.high - self.low if self._has_variables else zero + (self.high - self.low)
        return numbers * width + self.low

    def log_prob(self, value: Variable) -> Variable:
        """Computes the logarithm of the density at a value.

        Args:
            value (Variable): any shape, float32 or float64.

        Returns:
            Variable: same shape and type as `value`; minus infinity outside (low, high).

        Raises:
            TypeError: `value` is not a Variable.

        Example:
            density = fluid.layers.Uniform(0.0, 3.0).log_prob(fluid.layers.fill_constant([1], 'float32', 1.0))
        """
        above, below = less_than(self.low, value), less_than(value, self.high)
        above, below = cast(above, value.dtype), cast(below, value.dtype)
        return log(above * below) - log(self.high - self.low)

    def entropy(self) -> Variable:
        """Computes the entropy.

        Returns:
            Variable: same shape and type as `low`.

        Example:
            entropy = fluid.layers.Uniform(0.0, 3.0).entropy()
        """
        return log(self.high - self.low)


class Normal(_OfTwoParameters):
    """The normal distribution.

    Args:
        loc (float, list, numpy.ndarray or Variable): the means.
        scale (float, list, numpy.ndarray or Variable): the standard deviations; a Variable if `loc` is one.

    Raises:
        TypeError: an argument has the wrong type.
        ValueError: only one of the arguments is a Variable.

    Example:
        a = fluid.layers.Normal(loc=[0.0, 1.0], scale=[1.0, 2.0])
        numbers = a.sample([5])     # shape [5, 2]
        apart = a.kl_divergence(fluid.layers.Normal(loc=[0.0, 0.0], scale=[1.0, 1.0]))
    """

    _NAMES = ("loc", "scale")

    def __init__(
        self, loc: float | Sequence[Any] | Array | Variable, scale: float | Sequence[Any] | Array | Variable
    ) -> None:
        self.loc, self.scale = self._take(self._KINDS, loc=loc, scale=scale)

    @with_texts(_SAMPLE, kind="Normal", first="loc", parameters="arguments")
    def sample(self, shape: Sequence[Any], seed: int = 0) -> Variable:  # type: ignore[override]  # as in Fluid
        """{sample}"""
        return self._sample(shape, seed)

    def _drawn(self, shape: Any, seed: int) -> Variable:
        return gaussian_random(shape, mean=0.0, std=1.0, seed=seed)

    def _drawn_like(self, zero: Variable, seed: int) -> Variable:
        return self._drawn(shape_layer(zero), seed)

    def _placed(self, numbers: Variable, zero: Variable) -> Variable:
        return numbers * (zero + self.scale) + self.loc

    def entropy(self) -> Variable:
        """Computes the entropy.

        Returns:
            Variable: same shape and type as `loc`.

        Example:
            entropy = fluid.layers.Normal(0.0, 3.0).entropy()
        """
        batch = list(self._sum().shape)
        zeros_like = fill_constant_batch_size_like(self._sum(), batch, self.loc.dtype, 0.0)
        return 0.5 + 0.5 * math.log(2 * math.pi) + log(self.scale + zeros_like)

    def log_prob(self, value: Variable) -> Variable:
        """Computes the logarithm of the density at a value.

        Args:
            value (Variable): any shape, float32 or float64.

        Returns:
            Variable: same shape and type as `value`.

        Raises:
            TypeError: `value` is not a Variable.

        Example:
            density = fluid.layers.Normal(0.0, 3.0).log_prob(fluid.layers.fill_constant([1], 'float32', 1.0))
        """
        variance, log_scale = self.scale * self.scale, log(self.scale)
        exponent = -1.0 * ((value - self.loc) * (value - self.loc)) / (2.0 * variance)
        return exponent - log_scale - math.log(math.sqrt(2.0 * math.pi))

    def kl_divergence(self, other: Normal) -> Variable:
        """Computes the Kullback-Leibler divergence to another normal distribution.

        Args:
            other (Normal): the other distribution.

        Returns:
            Variable: same shape and type as `loc`.

        Raises:
            TypeError: `other` is not a Normal.

        Example:
            apart = fluid.layers.Normal(0.0, 3.0).kl_divergence(fluid.layers.Normal(1.0, 2.0))
        """
        self._require_same(other)
        ratio = self.scale / other.scale
        ratio = ratio * ratio
        distance = (self.loc - other.loc) / other.scale
        return 0.5 * (ratio + distance * distance - 1.0 - log(ratio))


class Categorical(Distribution):
    """The categorical distribution.

    Args:
        logits (list, numpy.ndarray or Variable): shape [..., classes]; the probabilities are their softmax.

    Raises:
        TypeError: `logits` is not a list, a numpy.ndarray or a Variable.

    Example:
        a = fluid.layers.Categorical(fluid.data('a', [None, 3]))
        apart = a.kl_divergence(fluid.layers.Categorical(fluid.data('b', [None, 3])))
        entropy = a.entropy()
    """

    def __init__(self, logits: Sequence[Any] | Array | Variable) -> None:
        (self.logits,) = self._take((numpy.ndarray, list), logits=logits)

    def _shifted(self) -> Variable:
        """Returns the logits minus the largest of each row, whose exponentials do not overflow."""
        return self.logits - reduce_max(self.logits, dim=-1, keep_dim=True)

    def kl_divergence(self, other: Categorical) -> Variable:
        """Computes the Kullback-Leibler divergence to another distribution over the same classes.

        Args:
            other (Categorical): the other distribution.

        Returns:
            Variable: the shape of `logits` with 1 as last extent, same type as `logits`.

        Raises:
            TypeError: `other` is not a Categorical.

        Example:
            a, b = (fluid.layers.Categorical(fluid.data(name, [None, 3])) for name in 'ab')
            apart = a.kl_divergence(b)
        """
        self._require_same(other)
        logits, other_logits = self._shifted(), other._shifted()
        powers, other_powers = exp(logits), exp(other_logits)
        total = reduce_sum(powers, dim=-1, keep_dim=True)
        other_total = reduce_sum(other_powers, dim=-1, keep_dim=True)
        probabilities = powers / total
        difference = logits - log(total) - other_logits + log(other_total)
        return reduce_sum(probabilities * difference, dim=-1, keep_dim=True)

    def entropy(self) -> Variable:
        """Computes the entropy.

        Returns:
            Variable: the shape of `logits` with 1 as last extent, same type as `logits`.

        Example:
            entropy = fluid.layers.Categorical(fluid.data('a', [None, 3])).entropy()
        """
        logits = self._shifted()
        powers = exp(logits)
        total = reduce_sum(powers, dim=-1, keep_dim=True)
        return -1.0 * reduce_sum(powers / total * (logits - log(total)), dim=-1, keep_dim=True)
