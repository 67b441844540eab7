"""Layers with one input and one output, computed element by element, and cumulative sums."""

from __future__ import annotations

from penstock._src.ir.variable import Variable
from penstock._src.layers.decorators import Attrs, op_layer
from penstock._src.layers.op_layers import generate_layer_fn


@op_layer("abs", typed="x")
def abs(x: Variable, name: str | None = None) -> Attrs:
    """Computes |x|, element by element."""


@op_layer("acos", typed="x")
def acos(x: Variable, name: str | None = None) -> Attrs:
    """Computes the arc cosine of x, element by element."""


@op_layer("asin", typed="x")
def asin(x: Variable, name: str | None = None) -> Attrs:
    """Computes the arc sine of x, element by element."""


@op_layer("atan", typed="x")
def atan(x: Variable, name: str | None = None) -> Attrs:
    """Computes the arc tangent of x, element by element."""


@op_layer("ceil", typed="x")
def ceil(x: Variable, name: str | None = None) -> Attrs:
    """Computes the smallest integer that is at least x, element by element."""


@op_layer("cos", typed="x")
def cos(x: Variable, name: str | None = None) -> Attrs:
    """Computes the cosine of x, element by element."""


@op_layer("exp", typed="x")
def exp(x: Variable, name: str | None = None) -> Attrs:
    """Computes e ** x, element by element."""


@op_layer("floor", typed="x")
def floor(x: Variable, name: str | None = None) -> Attrs:
    """Computes the largest integer that is at most x, element by element."""


@op_layer("log", typed="x")
def log(x: Variable, name: str | None = None) -> Attrs:
    """Computes the natural logarithm of x, element by element."""


@op_layer("logsigmoid", typed="x")
def logsigmoid(x: Variable, name: str | None = None) -> Attrs:
    """Computes log(1 / (1 + exp(-x))), element by element."""


@op_layer("reciprocal", typed="x")
def reciprocal(x: Variable, name: str | None = None) -> Attrs:
    """Computes 1 / x, element by element."""


@op_layer("relu", typed="x")
def relu(x: Variable, name: str | None = None) -> Attrs:
    """Computes max(x, 0), element by element."""


@op_layer("round", typed="x")
def round(x: Variable, name: str | None = None) -> Attrs:
    """Computes the integer nearest to x (halves are rounded away from 0), element by element."""


@op_layer("rsqrt", typed="x")
def rsqrt(x: Variable, name: str | None = None) -> Attrs:
    """Computes 1 / sqrt(x), element by element."""


@op_layer("sigmoid", typed="x")
def sigmoid(x: Variable, name: str | None = None) -> Attrs:
    """Computes 1 / (1 + exp(-x)), element by element."""


@op_layer("sign", typed="x")
def sign(x: Variable, name: str | None = None) -> Attrs:
    """Computes -1, 0 or 1 as x is below, equal to or above 0, element by element."""


@op_layer("sin", typed="x")
def sin(x: Variable, name: str | None = None) -> Attrs:
    """Computes the sine of x, element by element."""


@op_layer("softplus", typed="x")
def softplus(x: Variable, name: str | None = None) -> Attrs:
    """Computes log(1 + exp(x)), element by element."""


@op_layer("softsign", typed="x")
def softsign(x: Variable, name: str | None = None) -> Attrs:
    """Computes x / (1 + |x|), element by element."""


@op_layer("sqrt", typed="x")
def sqrt(x: Variable, name: str | None = None) -> Attrs:
    """Computes the square root of x, element by element."""


@op_layer("square", typed="x")
def square(x: Variable, name: str | None = None) -> Attrs:
    """Computes x ** 2, element by element."""


@op_layer("tanh", typed="x")
def tanh(x: Variable, name: str | None = None) -> Attrs:
    """Computes the hyperbolic tangent of x, element by element."""


@op_layer("tanh_shrink", typed="x")
def tanh_shrink(x: Variable, name: str | None = None) -> Attrs:
    """Computes x - tanh(x), element by element."""


@op_layer("erf")
def erf(x: Variable) -> Attrs:
    """Computes the error function of each element."""


@op_layer("hard_shrink", typed="x")
def hard_shrink(x: Variable, threshold: float | None = None) -> Attrs:
    """Sets elements in [-threshold, threshold] to zero.

    Args:
        threshold: bound of the range, by default 0.5.
    """


@op_layer("softshrink", typed="x", attrs={"lambda": "alpha"})
def softshrink(x: Variable, alpha: float | None = None) -> Attrs:
    """Moves each element towards zero by alpha; elements in [-alpha, alpha] become zero.

    Args:
        alpha: the distance, by default 0.5.
    """


@op_layer("thresholded_relu", typed="x")
def thresholded_relu(x: Variable, threshold: float | None = None) -> Attrs:
    """Sets elements that do not exceed a threshold to zero.

    Args:
        threshold: the threshold, by default 1.
    """


@op_layer("gelu")
def gelu(x: Variable, approximate: bool = False) -> Attrs:
    """Computes x times the standard normal distribution function of x, element by element.

    Args:
        approximate: use the tanh approximation of the distribution function.

    Reference:
        Hendrycks and Gimpel, Gaussian Error Linear Units, arXiv:1606.08415.
    """


@op_layer("cumsum")
def cumsum(x: Variable, axis: int | None = None, exclusive: bool | None = None, reverse: bool | None = None) -> Attrs:
    """Computes cumulative sums along one axis.

    Args:
        axis: the axis; None: the last.
        exclusive: exclude the element itself from its sum.
        reverse: sum from the end.

    Example:
        x = fluid.data('x', [None, 4])
        y = fluid.layers.cumsum(x, axis=1)
    """


# Fluid's private layers that take the op's own keywords, including `out`.
_scale = generate_layer_fn("scale")
_elementwise_div = generate_layer_fn("elementwise_div")
