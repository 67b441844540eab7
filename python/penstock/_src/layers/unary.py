"""Layers with one input and one output; those without attributes are generated from a table of op types."""

from penstock._src.ir.argument_types import element_types
from penstock._src.layers.helper import LayerHelper
from penstock._src.layers.op_layers import generate_layer_fn

_FORMULAS = {
    "abs": "|x|",
    "acos": "the arc cosine of x",
    "asin": "the arc sine of x",
    "atan": "the arc tangent of x",
    "ceil": "the smallest integer that is at least x",
    "cos": "the cosine of x",
    "exp": "e ** x",
    "floor": "the largest integer that is at most x",
    "log": "the natural logarithm of x",
    "logsigmoid": "log(1 / (1 + exp(-x)))",
    "reciprocal": "1 / x",
    "relu": "max(x, 0)",
    "round": "the integer nearest to x (halves are rounded away from 0)",
    "rsqrt": "1 / sqrt(x)",
    "sigmoid": "1 / (1 + exp(-x))",
    "sign": "-1, 0 or 1 as x is below, equal to or above 0",
    "sin": "the sine of x",
    "softplus": "log(1 + exp(x))",
    "softsign": "x / (1 + |x|)",
    "sqrt": "the square root of x",
    "square": "x ** 2",
    "tanh": "the hyperbolic tangent of x",
    "tanh_shrink": "x - tanh(x)",
}
__all__ = list(_FORMULAS)
_TAKE_INTEGERS = dict.fromkeys(("abs", "exp", "square"), "int32 int64 float16 float32 float64")

_DOC = """Computes {formula}, element by element.

Args:
    x (Variable): any shape, float32 or float64.
    name (str | None): prefix of the names of the variables that the layer creates.

Returns:
    Variable: same shape and type as `x`.

Raises:
    TypeError: `x` is not a Variable, or has an unsupported element type.

Example:
    x = fluid.data('x', [None, 4])
    y = fluid.layers.{op}(x)
"""


def _unary(op_type):

    def layer(x, name=None):
        helper = LayerHelper(op_type, name=name).takes(x=x)
        out = helper.create_variable_for_type_inference(x.dtype)
        helper.append_op(op_type, {"X": x}, {"Out": out})
        return out

    layer.__name__ = op_type
    layer.__doc__ = _DOC.format(op=op_type, formula=_FORMULAS[op_type])
    return element_types(x=_TAKE_INTEGERS.get(op_type, "float16 float32 float64"))(layer)


for _type in _FORMULAS:
    globals()[_type] = _unary(_type)

__all__ += ["cumsum", "erf", "gelu", "hard_shrink", "softshrink", "thresholded_relu"]


def _with_attr(op_type, x, attrs):
    """Appends the op for x; an attribute of None keeps its default."""
    helper = LayerHelper(op_type).takes(x=x)
    out = helper.create_variable_for_type_inference(x.dtype)
    attrs = {attr: value for attr, value in attrs.items() if value is not None}
    helper.append_op(op_type, {"X": x}, {"Out": out}, attrs)
    return out


def erf(x):
    """Computes the error function of each element.

    Args:
        x (Variable): any shape, float32 or float64.

    Returns:
        Variable: same shape and type as `x`.

    Raises:
        TypeError: `x` is not a Variable.
        penstock.ProgramError: `x` contains integers.

    Example:
        y = fluid.layers.erf(fluid.data('x', [None, 3]))
    """
    return _with_attr("erf", x, {})


@element_types(x="float16 float32 float64")
def hard_shrink(x, threshold=None):
    """Sets elements in [-threshold, threshold] to zero.

    Args:
        x (Variable): any shape, float32 or float64.
        threshold (float): bound of the range, by default 0.5.

    Returns:
        Variable: same shape and type as `x`.

    Raises:
        TypeError: `x` is not a Variable, or has an unsupported element type.
        penstock.ProgramError: `x` contains integers.

    Example:
        y = fluid.layers.hard_shrink(fluid.data('x', [None, 3]), threshold=0.3)
    """
    return _with_attr("hard_shrink", x, {"threshold": threshold})


@element_types(x="float16 float32 float64")
def softshrink(x, alpha=None):
    """Moves each element towards zero by alpha; elements in [-alpha, alpha] become zero.

    Args:
        x (Variable): any shape, float32 or float64.
        alpha (float): the distance, by default 0.5.

    Returns:
        Variable: same shape and type as `x`.

    Raises:
        TypeError: `x` is not a Variable, or has an unsupported element type.
        penstock.ProgramError: `x` contains integers.

    Example:
        y = fluid.layers.softshrink(fluid.data('x', [None, 3]), alpha=0.3)
    """
    return _with_attr("softshrink", x, {"lambda": alpha})


@element_types(x="float16 float32 float64")
def thresholded_relu(x, threshold=None):
    """Sets elements that do not exceed a threshold to zero.

    Args:
        x (Variable): any shape, float32 or float64.
        threshold (float): the threshold, by default 1.

    Returns:
        Variable: same shape and type as `x`.

    Raises:
        TypeError: `x` is not a Variable, or has an unsupported element type.
        penstock.ProgramError: `x` contains integers.

    Example:
        y = fluid.layers.thresholded_relu(fluid.data('x', [None, 3]), threshold=0.4)
    """
    return _with_attr("thresholded_relu", x, {"threshold": threshold})


def gelu(x, approximate=False):
    """Computes x times the standard normal distribution function of x, element by element.

    Args:
        x (Variable): any shape, float32 or float64.
        approximate (bool): use the tanh approximation of the distribution function.

    Returns:
        Variable: same shape and type as `x`.

    Raises:
        TypeError: `x` is not a Variable.

    Example:
        x = fluid.data('x', [None, 4])
        y = fluid.layers.gelu(x)

    Reference:
        Hendrycks and Gimpel, Gaussian Error Linear Units, arXiv:1606.08415.
    """
    helper = LayerHelper("gelu").takes(x=x)
    out = helper.create_variable_for_type_inference(x.dtype)
    helper.append_op("gelu", {"X": x}, {"Out": out}, {"approximate": approximate})
    return out


def cumsum(x, axis=None, exclusive=None, reverse=None):
    """Computes cumulative sums along one axis.

    Args:
        x (Variable): any shape; float32, float64, int32 or int64.
        axis (int | None): the axis; None: the last.
        exclusive (bool | None): exclude the element itself from its sum.
        reverse (bool | None): sum from the end.

    Returns:
        Variable: same shape and type as `x`.

    Raises:
        TypeError: `x` is not a Variable.

    Example:
        x = fluid.data('x', [None, 4])
        y = fluid.layers.cumsum(x, axis=1)
    """
    attrs = {"axis": axis, "exclusive": exclusive, "reverse": reverse}
    attrs = {name: value for name, value in attrs.items() if value is not None}
    helper = LayerHelper("cumsum").takes(x=x)
    out = helper.create_variable_for_type_inference(x.dtype)
    helper.append_op("cumsum", {"X": x}, {"Out": out}, attrs)
    return out


# Fluid's private layers that take the op's own keywords, including `out`.
_scale = generate_layer_fn("scale")
_elementwise_div = generate_layer_fn("elementwise_div")
