"""Arithmetic on tensors: elementwise ops, reductions, logic."""

from __future__ import annotations

from penstock._src.ir import unique_name
from penstock._src.ir.argument_types import element_types
from penstock._src.ir.types import float_attr
from penstock._src.ir.variable import Variable
from penstock._src.layers.decorators import Attrs, layer, op_layer
from penstock._src.layers.helper import LayerHelper

__all__ = [
    "clip",
    "clip_by_norm",
    "elementwise_add",
    "elementwise_div",
    "elementwise_floordiv",
    "elementwise_max",
    "elementwise_min",
    "elementwise_mod",
    "elementwise_mul",
    "elementwise_pow",
    "elementwise_sub",
    "logical_and",
    "logical_not",
    "logical_or",
    "logical_xor",
    "mean",
    "pow",
    "reduce_all",
    "reduce_any",
    "reduce_max",
    "reduce_mean",
    "reduce_min",
    "reduce_prod",
    "reduce_sum",
    "scale",
]


@op_layer("mean", typed="x")
def mean(x: Variable, name: str | None = None) -> Attrs:
    """Computes the mean of all elements.

    Returns:
        Variable: shape [1], same type as `x`.

    Example:
        x = fluid.data('x', [None, 4])
        assert fluid.layers.mean(x).shape == (1,)
    """


@layer("scale", typed="x")
def scale(x, scale=1.0, bias=0.0, bias_after_scale=True, act=None, name=None):
    """Computes scale * x + bias, or scale * (x + bias).

    Args:
        x (Variable): any shape, or selected rows.
        scale (float | Variable): the factor; a Variable has one element.
        bias (float): the term.
        bias_after_scale (bool): add the bias after the multiplication.

    Returns:
        Variable: same shape and type as `x`.

    Example:
        x = fluid.data('x', [None, 4])
        y = fluid.layers.scale(x, scale=2.0, bias=1.0)
    """
    helper = LayerHelper("scale", act=act, name=name).takes(x=x)
    out = helper.create_variable_for_type_inference(x.dtype)
    inputs = {"X": x}
    attrs = {"bias": float_attr(bias), "bias_after_scale": bias_after_scale}
    if isinstance(scale, Variable):
        inputs["ScaleTensor"] = scale
    else:
        attrs["scale"] = float_attr(scale)
    helper.append_op("scale", inputs, {"Out": out}, attrs)
    return helper.append_activation(out)


@layer("clip", typed="x")
def clip(x, min, max, name=None):
    """Limits each element to [min, max].

    Args:
        x (Variable): any shape, or selected rows.
        min (float): lower bound.
        max (float): upper bound, above `min`.
        name (str | None): name of the result.

    Returns:
        Variable: same shape and type as `x`.

    Example:
        x = fluid.data('x', [None, 4])
        y = fluid.layers.clip(x, min=-1.0, max=1.0)
    """
    return _clipping("clip", x, {"min": min, "max": max}, name)


@layer("clip_by_norm", fluid_accepts={"x": "float32 float64"})
def clip_by_norm(x, max_norm, name=None):
    """Scales x down so that its Euclidean norm is at most `max_norm`.

    Args:
        x (Variable): any shape, or selected rows.
        max_norm (float): the maximum norm, above 0.
        name (str | None): name of the result.

    Returns:
        Variable: same shape and type as `x`.

    Example:
        x = fluid.data('x', [None, 4])
        y = fluid.layers.clip_by_norm(x, max_norm=1.0)
    """
    return _clipping("clip_by_norm", x, {"max_norm": max_norm}, name)


def _clipping(op_type, x, attrs, name):
    """Appends a clip op; the result has exactly the requested name."""
    helper = LayerHelper(op_type, name=name).takes(x=x)
    if name is None:
        name = unique_name.generate(helper.name + ".tmp")
    out = helper.create_variable(name=name, type=x.type, dtype=x.dtype)
    helper.append_op(op_type, {"X": x}, {"Out": out}, attrs)
    return out


@layer("pow", fluid_accepts={"x": "int32 int64 float32 float64", "factor": "float32"})
def pow(x, factor=1.0, name=None):
    """Computes x ** factor, element by element.

    Args:
        factor (float | Variable): the exponent; a Variable has one element.

    Returns:
        Variable: same shape and type as `x`.

    Example:
        x = fluid.data('x', [None, 4])
        y = fluid.layers.pow(x, factor=3.0)
    """
    helper = LayerHelper("pow", name=name).takes(x=x)
    inputs, attrs = {"X": x}, {}
    if isinstance(factor, Variable):
        inputs["FactorTensor"] = factor
    else:
        attrs["factor"] = factor
    out = helper.create_variable_for_type_inference(x.dtype)
    helper.append_op("pow", inputs, {"Out": out}, attrs)
    return out


_LOGICAL_DOC = """Computes {formula}, element by element.

Args:
    x (Variable): any shape, bool.{y}
    out (Variable | None): receives the result; bool.
    name (str | None): prefix of the names of the variables that the layer creates.

Returns:
    Variable: same shape as `x`, bool.

Raises:
    TypeError: an argument is not a Variable, or not bool.

Example:
    x = fluid.data('x', [None, 4], 'bool')
    z = fluid.layers.{op}({arguments})
"""


def _logical(op_type, inputs, out, name):
    helper = LayerHelper(op_type, name=name)
    if out is None:
        out = helper.create_variable_for_type_inference("bool")
    helper.append_op(op_type, inputs, {"Out": out})
    return out


def _of_two(op_type, formula):

    def layer(x, y, out=None, name=None):
        return _logical(op_type, {"X": x, "Y": y}, out, name)

    layer.__name__ = op_type
    layer.__doc__ = _LOGICAL_DOC.format(
        op=op_type, formula=formula, arguments="x, x", y="\n    y (Variable): same shape as `x`, bool."
    )
    return element_types(x="bool", y="bool")(layer)


logical_and = _of_two("logical_and", "x and y")
logical_or = _of_two("logical_or", "x or y")
logical_xor = _of_two("logical_xor", "x xor y")


@element_types(x="bool")
def logical_not(x, out=None, name=None):
    return _logical("logical_not", {"X": x}, out, name)


logical_not.__doc__ = _LOGICAL_DOC.format(op="logical_not", formula="not x", arguments="x", y="")


_BINARY_DOC = """Computes {formula}, element by element, broadcasting `y` to the shape of `x`.

The axes of `y` are aligned with those of `x` from `axis` on. `y` is broadcast over the axes that it lacks and over
those in which its extent is 1.

Args:
    x (Variable): any shape; {types}.
    y (Variable): same type as `x`, with no more axes than `x`.
    axis (int): the axis of `x` with which the first axis of `y` is aligned; -1 aligns the last axes.
    act (str | None): name of an activation.
    name (str | None): prefix of the names of the variables that the layer creates.

Returns:
    Variable: same shape and type as `x`.

Raises:
    TypeError: `x` or `y` is not a Variable, or has an unsupported element type.
    penstock.ProgramError: `y` cannot be broadcast to the shape of `x`.

Example:
    x = fluid.data('x', [None, 3, 4], {dtype!r})
    y = fluid.data('y', [3], {dtype!r})
    z = fluid.layers.{op}(x, y, axis=1)
"""


_NUMBERS = "int32 int64 float16 float32 float64"


def _elementwise(op_type, formula, types="float32, float64, int32 or int64"):

    def layer(x, y, axis=-1, act=None, name=None):
        helper = LayerHelper(op_type, act=act, name=name).takes(x=x)
        out = helper.create_variable_for_type_inference(x.dtype)
        helper.append_op(op_type, {"X": x, "Y": y}, {"Out": out}, {"axis": axis, "use_mkldnn": False})
        return helper.append_activation(out)

    layer.__name__ = op_type
    layer.__doc__ = _BINARY_DOC.format(
        op=op_type, formula=formula, types=types, dtype="float32" if "float32" in types else "int64"
    )
    return element_types(x=_NUMBERS, y=_NUMBERS)(layer)


elementwise_add = _elementwise("elementwise_add", "x + y")
elementwise_sub = _elementwise("elementwise_sub", "x - y")
elementwise_mul = _elementwise("elementwise_mul", "x * y")
elementwise_div = _elementwise("elementwise_div", "x / y")
elementwise_max = _elementwise("elementwise_max", "the larger of x and y")
elementwise_min = _elementwise("elementwise_min", "the smaller of x and y")
elementwise_pow = _elementwise("elementwise_pow", "x ** y")
elementwise_mod = _elementwise("elementwise_mod", "the remainder of x / y", "int32 or int64")
elementwise_floordiv = _elementwise("elementwise_floordiv", "x / y, rounded down", "int32 or int64")


_REDUCE_DOC = """Computes {what} over the given axes, or over all axes.

Args:
    input (Variable): any shape, {types}.
    dim (int | list[int] | None): the axes; negative: counted from the end; None: all.
    keep_dim (bool): keep the reduced axes, with extent 1.
    name (str | None): prefix of the names of the variables that the layer creates.

Returns:
    Variable: the shape of `input` without the reduced axes ([1] if none remains), same type as `input`.

Raises:
    TypeError: `input` is not a Variable, or has an unsupported element type.
    penstock.ProgramError: `input` lacks an axis.

Example:
    x = fluid.data('x', [2, 3, 4], '{dtype}')
    assert fluid.layers.{op}(x, dim=[0, 2]).shape == (3,)
"""


def _reduce(op_type, what, types="float32 or float64; int32 and int64 where no gradient is needed"):

    def layer(input, dim=None, keep_dim=False, name=None):
        helper = LayerHelper(op_type, name=name).takes(input=input)
        out = helper.create_variable_for_type_inference(input.dtype)
        if dim is not None and not isinstance(dim, (list, tuple)):
            dim = [dim]
        helper.append_op(
            op_type,
            {"X": input},
            {"Out": out},
            {"dim": list(dim) if dim else [0], "keep_dim": keep_dim, "reduce_all": not dim},
        )
        return out

    layer.__name__ = op_type
    layer.__doc__ = _REDUCE_DOC.format(
        op=op_type, what=what, types=types, dtype="bool" if types == "bool" else "float32"
    )
    return element_types(input="bool" if types == "bool" else "int32 int64 float32 float64")(layer)


reduce_sum = _reduce("reduce_sum", "the sum")
reduce_mean = _reduce("reduce_mean", "the mean")
reduce_max = _reduce("reduce_max", "the maximum")
reduce_min = _reduce("reduce_min", "the minimum")
reduce_prod = _reduce("reduce_prod", "the product")
reduce_all = _reduce("reduce_all", "whether all elements are true", "bool")
reduce_any = _reduce("reduce_any", "whether any element is true", "bool")
