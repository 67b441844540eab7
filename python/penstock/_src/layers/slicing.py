"""Layers that slice, repeat, pad, reverse and stack tensors."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock._src.ir.types import VarType, float_attr
from penstock._src.ir.variable import Variable
from penstock._src.layers.decorators import Attrs, layer, op_layer
from penstock._src.layers.helper import LayerHelper
from penstock._src.layers.tensor import int_list, is_array, join_array

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any


@op_layer("shape", fluid_accepts={"input": "int32 int64 float32 float64"})
def shape(input: Variable) -> Attrs:
    """Returns the shape of a tensor at run time.

    Returns:
        Variable: shape [rank of `input`], int32.

    Example:
        x = fluid.data('x', [None, 8])
        extents = fluid.layers.shape(x)
        assert extents.shape == (2,)
    """


@layer()
def slice(
    input: Variable,
    axes: Sequence[int],
    starts: Sequence[int | Variable] | Variable,
    ends: Sequence[int | Variable] | Variable,
) -> Variable:
    """Extracts the range [starts[i], ends[i]) of axis axes[i], for each i.

    Args:
        input (Variable): any shape and type.
        axes (list[int]): the axes to slice.
        starts (list[int | Variable] | Variable): first positions; negative: counted from the end. A Variable in a list
            has one element; one Variable holds all positions.
        ends (list[int | Variable] | Variable): end positions, exclusive, in the same form; negative: counted from the
            end; clipped to the extent.

    Returns:
        Variable: the slice, same type as `input`.

    Example:
        x = fluid.data('x', [4, 5, 6])
        assert fluid.layers.slice(x, axes=[0, 1], starts=[1, 0], ends=[3, -1]).shape == (2, 4, 6)
    """
    return _cut("slice", input, axes, (("starts", starts), ("ends", ends)), flag_of_whole=-1)


@layer("strided_slice", fluid_accepts={"input": "int32 int64 float32 float64"}, like=slice)
def strided_slice(
    input: Variable,
    axes: Sequence[int],
    starts: Sequence[int | Variable] | Variable,
    ends: Sequence[int | Variable] | Variable,
    strides: Sequence[int | Variable] | Variable,
) -> Variable:
    """Extracts every strides[i]-th element of the range [starts[i], ends[i]) of axis axes[i], for each i.

    Args:
        ends (list[int | Variable] | Variable): end positions, exclusive, in the same form; negative: counted from the
            end.
        strides (list[int | Variable] | Variable): steps, not 0, in the same form; a negative step runs backwards from
            the start.

    Example:
        x = fluid.data('x', [3, 6])
        assert fluid.layers.strided_slice(x, axes=[1], starts=[0], ends=[6], strides=[2]).shape == (3, 3)
    """
    return _cut(
        "strided_slice", input, axes, (("starts", starts), ("ends", ends), ("strides", strides)), flag_of_whole=1
    )


def _cut(op: str, input: Variable, axes: Sequence[int], bounds: Any, flag_of_whole: int) -> Variable:
    """Appends slice or strided_slice.

    flag_of_whole is the value of Fluid's infer_flags for all axes if one Variable holds a bound of all axes.
    """
    helper = LayerHelper(op).takes(input=input)
    inputs: dict[str, Any] = {"Input": input}
    attrs: dict[str, Any] = {"axes": list(axes)}
    flags = [1] * len(axes)
    for name, given in bounds:
        slot = f"{name.capitalize()}Tensor"
        if isinstance(given, Variable):
            given.stop_gradient = True
            inputs[slot] = given
            flags = [min(flag, flag_of_whole) for flag in flags]
            continue
        attrs[name], variables = int_list(helper, given)
        if variables:
            inputs[slot + "List"] = variables
            flags = [-1 if isinstance(one, Variable) else flag for one, flag in zip(given, flags)]
    attrs["infer_flags"] = flags
    out = helper.create_variable_for_type_inference(input.dtype)
    helper.append_op(op, inputs, {"Out": out}, attrs)
    return out


@op_layer("reverse", fluid_accepts={"x": "uint8 int32 int64 float32 float64"})
def reverse(x: Variable, axis: int | list[int]) -> Attrs:
    """Reverses the order of the elements along the given axes.

    Args:
        axis: the axes; negative: counted from the end.

    Example:
        x = fluid.data('x', [3, 4])
        y = fluid.layers.reverse(x, axis=[0])
    """
    return {"axis": [axis] if isinstance(axis, int) else list(axis)}


@layer("expand", fluid_accepts={"x": "bool int32 int64 float32 float64"})
def expand(x: Variable, expand_times: Sequence[int | Variable] | Variable, name: str | None = None) -> Variable:
    """Repeats a tensor expand_times[i] times along axis i.

    Args:
        expand_times (list[int | Variable] | Variable): number of repetitions of each axis; Variables are int32 or
            int64.

    Returns:
        Variable: the extents of `x` times `expand_times`, same type as `x`.

    Raises:
        ValueError: `x` is bool and has stop_gradient set, which Fluid rejects too.

    Example:
        x = fluid.data('x', [2, 3])
        assert fluid.layers.expand(x, expand_times=[1, 4]).shape == (2, 12)
    """
    helper = LayerHelper("expand", name=name).takes(x=x)
    if x.dtype == VarType.BOOL and x.stop_gradient:
        raise ValueError(f"expand: x ({x.name}) is bool and has stop_gradient set; Fluid takes bools only without it")
    inputs: dict[str, Any] = {"X": x}
    attrs: dict[str, Any] = {}
    if isinstance(expand_times, Variable):
        expand_times.stop_gradient = True
        inputs["ExpandTimes"] = expand_times
    else:
        attrs["expand_times"], variables = int_list(helper, expand_times)
        if variables:
            inputs["expand_times_tensor"] = variables
    out = helper.create_variable_for_type_inference(x.dtype)
    helper.append_op("expand", inputs, {"Out": out}, attrs)
    return out


@op_layer("gather", inputs={"X": "input"})
def gather(input: Variable, index: Variable, overwrite: bool = True) -> Attrs:
    """Gathers rows of a tensor by their numbers.

    Args:
        input: shape [N, ...].
        index: the row numbers, shape [K] or [K, 1], int32 or int64.
        overwrite: gradient of a row that occurs more than once in `index`: True: the gradient of its last occurrence
            only; False: the sum over its occurrences.

    Returns:
        Variable: shape [K, ...], same type as `input`.

    Example:
        x = fluid.data('x', [None, 8])
        index = fluid.data('index', [None], 'int32')
        assert fluid.layers.gather(x, index).shape == (-1, 8)
    """


@layer("stack", fluid_accepts={"x": "int32 int64 float16 float32 float64"})
def stack(x: Sequence[Variable] | Variable, axis: int = 0) -> Variable:
    """Joins tensors of one shape along a new axis.

    Args:
        x (list[Variable] | Variable): tensors of one shape and type, or one LoDTensorArray whose elements are stacked.
        axis (int): position of the new axis; negative: counted from the end.

    Returns:
        Variable: the stacked tensor, with one axis more than each input, of their type.

    Raises:
        TypeError: an input is not a Variable, or has an unsupported element type.
        ValueError: `x` is empty, or holds an array beside other Variables.

    Example:
        a = fluid.data('a', [2, 3])
        b = fluid.data('b', [2, 3])
        assert fluid.layers.stack([a, b], axis=1).shape == (2, 2, 3)
    """
    helper = LayerHelper("stack", input=x)
    parts = helper.multiple_input()
    out = helper.create_variable_for_type_inference(parts[0].dtype)
    if is_array(parts):
        return join_array(helper, parts[0], out, axis, use_stack=True)
    helper.append_op("stack", {"X": parts}, {"Y": out}, {"axis": axis})
    return out


@op_layer("pad", typed="x")
def pad(x: Variable, paddings: list[int], pad_value: float = 0.0, name: str | None = None) -> Attrs:
    """Adds elements of one value before and after each axis.

    Args:
        paddings: the numbers of elements before and after each axis, two for each axis.
        pad_value: value of the added elements.

    Returns:
        Variable: the extents of `x` plus the paddings, same type as `x`.

    Example:
        x = fluid.data('x', [2, 3])
        assert fluid.layers.pad(x, [0, 1, 2, 0]).shape == (3, 5)
    """
    return {"paddings": list(paddings), "pad_value": float_attr(pad_value)}


@op_layer("pad2d", typed="input", inputs={"X": "input", "Paddings": "paddings"})
def pad2d(
    input: Variable,
    paddings: list[int] | Variable = [0, 0, 0, 0],
    mode: str = "constant",
    pad_value: float = 0.0,
    data_format: str = "NCHW",
    name: str | None = None,
) -> Attrs:
    """Pads images with rows and columns.

    Args:
        input: shape [N, C, H, W], or [N, H, W, C] for NHWC.
        paddings: [top, bottom, left, right]; a Variable is int32 of shape [4].
        mode: 'constant' adds `pad_value`, 'edge' repeats the outermost elements, 'reflect' mirrors the image.
        pad_value: value of the added elements.

    Returns:
        Variable: the shape of `input` with padded height and width, same type as `input`.

    Example:
        x = fluid.data('x', [None, 3, 8, 8])
        assert fluid.layers.pad2d(x, [1, 1, 2, 2], mode='reflect').shape == (-1, 3, 10, 12)
    """
    return {"pad_value": float_attr(pad_value), "paddings": [] if isinstance(paddings, Variable) else list(paddings)}
