"""Mathematical functions that combine several ops or rename an op, and comparisons of tensors."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from penstock._src.ir.argument_types import ArgumentError
from penstock._src.ir.types import VarType, to_dtype
from penstock._src.ir.variable import Variable
from penstock._src.layers.arithmetic import elementwise_add, elementwise_mul, reduce_sum
from penstock._src.layers.decorators import Attrs, layer, op_layer
from penstock._src.layers.helper import LayerHelper
from penstock._src.layers.tensor import assign
from penstock._src.layers.unary import exp, log

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any


@layer(fluid_accepts={"input tensor1 tensor2": "int32 int64 float32 float64"})
def addcmul(
    input: Variable,
    tensor1: Variable,
    tensor2: Variable,
    value: float = 1.0,
    out: Variable | None = None,
    name: str | None = None,
) -> Variable:
    """Computes input + tensor1 * tensor2 * value.

    Args:
        tensor1 (Variable): same shape and type as `input`.
        tensor2 (Variable): same shape and type as `input`.
        value (float): the factor of the product; an int if `input` has an integer type.
        name (str): has no effect, as in Fluid.

    Returns:
        Variable: same shape and type as `input`.

    Raises:
        TypeError: `input`, `tensor1` or `tensor2` is not a Variable, or has an unsupported element type, or `value` is
            not a float for floating-point elements or not an int for integers.

    Example:
        a, b, c = (fluid.data(name, [None, 3]) for name in 'abc')
        y = fluid.layers.addcmul(a, b, c, value=0.5)
    """
    LayerHelper("addcmul").takes(input=input, tensor1=tensor1, tensor2=tensor2)
    kind = float if input.dtype in (VarType.FP32, VarType.FP64) else int
    if not isinstance(value, kind):
        raise TypeError(f"addcmul: value must be {kind.__name__} for {input.dtype.name}, not {value!r}")
    result = elementwise_add(input, elementwise_mul(tensor1, tensor2) * value)
    if out is None:
        return result
    assign(result, out)
    return out


@layer(fluid_accepts={"min max": "int32 float32 float64"})
def clamp(
    input: Variable,
    min: float | Variable | None = None,
    max: float | Variable | None = None,
    output: Variable | None = None,
    name: str | None = None,
) -> Variable:
    """Clips each element to [min, max].

    Args:
        input (Variable): any shape, float32 or float64.
        min (float or Variable): lower bound, by default the smallest positive number of float64, as in Fluid; a
            Variable has shape [1].
        max (float or Variable): upper bound, by default the largest number of float64; a Variable has shape [1].
        output (Variable): receives the result, of its shape and type; by default a new Variable.

    Returns:
        Variable: same shape and type as `input`.

    Raises:
        TypeError: `input` is not a Variable, or a bound has an unsupported element type.
        ValueError: neither bound is given.

    Example:
        y = fluid.layers.clamp(fluid.data('x', [None, 3]), min=-1.0, max=1.0)
    """
    if min is None and max is None:
        raise ValueError("clamp: one of min and max must be given")
    helper = LayerHelper("clamp", name=name).takes(input=input)
    inputs, attrs = {"X": input}, {"min": sys.float_info.min, "max": sys.float_info.max}
    for attr, bound in (("min", min), ("max", max)):
        if isinstance(bound, Variable):
            bound.stop_gradient = True
            inputs[attr.capitalize()] = bound
        elif bound is not None:
            attrs[attr] = bound
    if output is None:
        output = helper.create_variable_for_type_inference(input.dtype)
    helper.append_op("clip", inputs, {"Out": output}, attrs)
    return output


@layer(fluid_accepts={"x": "float32 float64"})
def logsumexp(
    x: Variable,
    dim: int | Sequence[Any] | None = None,
    keepdim: bool = False,
    out: Variable | None = None,
    name: str | None = None,
) -> Variable:
    """Computes the logarithm of the sum of exp(x) over the given axes, or over all axes.

    Args:
        dim (int or list): the axes that are summed over, by default all.
        keepdim (bool): whether to keep the reduced axes, with extent 1.

    Returns:
        Variable: the shape of `x` without the reduced axes ([1] if none remains), same type as `x`.

    Raises:
        penstock.ProgramError: `x` lacks an axis of `dim`.

    Example:
        y = fluid.layers.logsumexp(fluid.data('x', [None, 3]), dim=1, keepdim=True)
    """
    if not isinstance(x, Variable):
        raise ArgumentError(f"logsumexp: x must be a Variable, not {x!r}")
    total = reduce_sum(exp(x), dim, keepdim)
    if out is None:
        return log(total, name)
    LayerHelper("logsumexp", name=name).append_op("log", {"X": total}, {"Out": out})
    return out


@op_layer("log1p", fluid_accepts={"x": "float32 float64"})
def log1p(x: Variable, out: Variable | None = None, name: str | None = None) -> Attrs:
    """Computes log(1 + x), accurately for small x.

    Returns:
        Variable: same shape and type as `x`; NaN where `x` is below -1.
    """


@layer(fluid_accepts={"input": "float16 float32 float64"})
def log_softmax(
    input: Variable, axis: int | None = None, dtype: str | None = None, name: str | None = None
) -> Variable:
    """Computes the logarithm of the softmax.

    Args:
        axis (int): the axis of the classes, by default the last.
        dtype (str): the type to which `input` is cast first; by default it is not cast.
        name (str): prefix of the results' names; by default the layer's.

    Returns:
        Variable: same shape as `input`, of type `dtype` or else the type of `input`.

    Raises:
        penstock.ProgramError: `input` has no axis `axis`.

    Example:
        y = fluid.layers.log_softmax(fluid.data('x', [None, 3]))
    """
    helper = LayerHelper("log_softmax", name=name).takes(input=input)
    if dtype is not None:
        kind = to_dtype(dtype)
        cast = helper.create_variable_for_type_inference(kind)
        helper.append_op("cast", {"X": input}, {"Out": cast}, {"in_dtype": int(input.dtype), "out_dtype": int(kind)})
        input = cast
    softmax = helper.create_variable_for_type_inference(input.dtype)
    helper.append_op(
        "softmax", {"X": input}, {"Out": softmax}, {"axis": -1 if axis is None else axis, "use_cudnn": False}
    )
    out = helper.create_variable_for_type_inference(input.dtype)
    helper.append_op("log", {"X": softmax}, {"Out": out})
    return out


@op_layer("allclose")
def allclose(
    input: Variable,
    other: Variable,
    rtol: float = 1e-05,
    atol: float = 1e-08,
    equal_nan: bool = False,
    name: str | None = None,
) -> Attrs:
    """Tests whether all elements of two tensors are close: |input - other| <= atol + rtol * |other|.

    Args:
        other: same shape and type as `input`.
        rtol: the relative tolerance.
        equal_nan: whether two NaN count as close.

    Returns:
        Variable: shape [1], bool.

    Example:
        same = fluid.layers.allclose(fluid.data('x', [3]), fluid.data('y', [3]))
    """


@op_layer("equal", stop_gradient=True)
def elementwise_equal(x: Variable, y: Variable, name: str | None = None) -> Attrs:
    """Tests whether x == y, element by element.

    Args:
        y: same shape and type as `x`.

    Returns:
        Variable: same shape as `x`, bool; it has no gradient.

    Example:
        same = fluid.layers.elementwise_equal(fluid.data('x', [3]), fluid.data('y', [3]))
    """
    return {"force_cpu": False}
