"""Arithmetic on tensors: elementwise ops, reductions, logic."""

from __future__ import annotations

from collections.abc import Sequence

from penstock._src.ir.types import float_attr
from penstock._src.ir.variable import Variable
from penstock._src.layers.decorators import Attrs, op_layer
from penstock._src.layers.variants import op_layers


@op_layer("mean", typed="x")
def mean(x: Variable, name: str | None = None) -> Attrs:
    """Computes the mean of all elements.

    Returns:
        Variable: shape [1], same type as `x`.

    Example:
        x = fluid.data('x', [None, 4])
        assert fluid.layers.mean(x).shape == (1,)
    """


@op_layer("scale", typed="x", inputs={"ScaleTensor": "scale"})
def scale(
    x: Variable,
    scale: float | Variable = 1.0,
    bias: float = 0.0,
    bias_after_scale: bool = True,
    act: str | None = None,
    name: str | None = None,
) -> Attrs:
    """Computes scale * x + bias, or scale * (x + bias).

    Args:
        scale: the factor; a Variable has one element.
        bias: the term.
        bias_after_scale: add the bias after the multiplication.

    Example:
        x = fluid.data('x', [None, 4])
        y = fluid.layers.scale(x, scale=2.0, bias=1.0)
    """
    factor = None if isinstance(scale, Variable) else float_attr(scale)
    return {"scale": factor, "bias": float_attr(bias)}


@op_layer("clip", typed="x", named=True)
def clip(x: Variable, min: float, max: float, name: str | None = None) -> Attrs:
    """Limits each element to [min, max].

    Args:
        min: lower bound.
        max: upper bound, above `min`.
        name: name of the result.

    Example:
        x = fluid.data('x', [None, 4])
        y = fluid.layers.clip(x, min=-1.0, max=1.0)
    """


@op_layer("clip_by_norm", fluid_accepts={"x": "float32 float64"}, named=True)
def clip_by_norm(x: Variable, max_norm: float, name: str | None = None) -> Attrs:
    """Scales x down so that its Euclidean norm is at most `max_norm`.

    Args:
        max_norm: the maximum norm, above 0.
        name: name of the result.

    Example:
        x = fluid.data('x', [None, 4])
        y = fluid.layers.clip_by_norm(x, max_norm=1.0)
    """


@op_layer(
    "pow", fluid_accepts={"x": "int32 int64 float32 float64", "factor": "float32"}, inputs={"FactorTensor": "factor"}
)
def pow(x: Variable, factor: float | Variable = 1.0, name: str | None = None) -> Attrs:
    """Computes x ** factor, element by element.

    Args:
        factor: the exponent; a Variable has one element.

    Example:
        x = fluid.data('x', [None, 4])
        y = fluid.layers.pow(x, factor=3.0)
    """


@op_layers(typed="x y")
def _logical(x: Variable, y: Variable, out: Variable | None = None, name: str | None = None) -> Attrs:
    """Computes {formula}, element by element.

    Args:
        y: same shape as `x`, bool.

    Returns:
        Variable: same shape as `x`, bool.

    Example:
        x = fluid.data('x', [None, 4], 'bool')
        z = fluid.layers.{layer}(x, x)
    """


logical_and = _logical("logical_and", formula="x and y")
logical_or = _logical("logical_or", formula="x or y")
logical_xor = _logical("logical_xor", formula="x xor y")


@op_layer("logical_not", typed="x")
def logical_not(x: Variable, out: Variable | None = None, name: str | None = None) -> Attrs:
    """Computes not x, element by element.

    Example:
        x = fluid.data('x', [None, 4], 'bool')
        z = fluid.layers.logical_not(x)
    """


@op_layers(typed="x y")
def _elementwise(x: Variable, y: Variable, axis: int = -1, act: str | None = None, name: str | None = None) -> Attrs:
    """Computes {formula}, element by element, broadcasting `y` to the shape of `x`.

    The axes of `y` are aligned with those of `x` from `axis` on. `y` is broadcast over the axes that it lacks and over
    those in which its extent is 1.

    Args:
        x: any shape.
        y: same type as `x`, with no more axes than `x`.
        axis: the axis of `x` with which the first axis of `y` is aligned; -1 aligns the last axes.

    Returns:
        Variable: same shape and type as `x`.

    Raises:
        penstock.ProgramError: `y` cannot be broadcast to the shape of `x`.

    Example:
        x = fluid.data('x', [None, 3, 4], {dtype!r})
        y = fluid.data('y', [3], {dtype!r})
        z = fluid.layers.{layer}(x, y, axis=1)
    """
    return {"use_mkldnn": False}


elementwise_add = _elementwise("elementwise_add", formula="x + y", dtype="float32")
elementwise_sub = _elementwise("elementwise_sub", formula="x - y", dtype="float32")
elementwise_mul = _elementwise("elementwise_mul", formula="x * y", dtype="float32")
elementwise_div = _elementwise("elementwise_div", formula="x / y", dtype="float32")
elementwise_max = _elementwise("elementwise_max", formula="the larger of x and y", dtype="float32")
elementwise_min = _elementwise("elementwise_min", formula="the smaller of x and y", dtype="float32")
elementwise_pow = _elementwise("elementwise_pow", formula="x ** y", dtype="float32")
elementwise_mod = _elementwise("elementwise_mod", formula="the remainder of x / y", dtype="float32")
elementwise_floordiv = _elementwise("elementwise_floordiv", formula="x / y, rounded down", dtype="int64")


@op_layers(fluid_accepts={"input": "int32 int64 float32 float64"}, inputs={"X": "input"})
def _reduce(
    input: Variable, dim: int | Sequence[int] | None = None, keep_dim: bool = False, name: str | None = None
) -> Attrs:
    """Computes {what} over the given axes, or over all axes.

    Args:
        input: any shape.
        dim: the axes; negative: counted from the end; None: all.

    Returns:
        Variable: the shape of `input` without the reduced axes ([1] if none remains), same type as `input`.

    Raises:
        penstock.ProgramError: `input` lacks an axis.

    Example:
        x = fluid.data('x', [2, 3, 4], '{dtype}')
        assert fluid.layers.{layer}(x, dim=[0, 2]).shape == (3,)
    """
    axes = [dim] if isinstance(dim, int) else list(dim or [])
    return {"dim": axes or [0], "reduce_all": not axes}


reduce_sum = _reduce("reduce_sum", what="the sum", dtype="float32")
reduce_mean = _reduce("reduce_mean", what="the mean", dtype="float32")
reduce_max = _reduce("reduce_max", what="the maximum", dtype="float32")
reduce_min = _reduce("reduce_min", what="the minimum", dtype="float32")
reduce_prod = _reduce("reduce_prod", what="the product", dtype="float32")
reduce_all = _reduce("reduce_all", fluid_accepts={"input": "bool"}, what="whether all elements are true", dtype="bool")
reduce_any = _reduce("reduce_any", fluid_accepts={"input": "bool"}, what="whether any element is true", dtype="bool")
