"""Crops, splits and reorderings of tensors."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock._src.ir.types import float_attr
from penstock._src.ir.variable import Variable
from penstock._src.layers.decorators import Attrs, layer, op_layer
from penstock._src.layers.helper import LayerHelper, require_kind
from penstock._src.layers.reshaping import reshape
from penstock._src.layers.tensor import int_list

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from typing import Any


def _layer(
    op_type: str, inputs: dict[str, Variable], attrs: dict[str, Any], name: str | None = None, type_of: str = "X"
) -> Variable:
    helper = LayerHelper(op_type, name=name)
    helper.require_slots(inputs)
    out = helper.create_variable_for_type_inference(inputs[type_of].dtype)
    helper.append_op(op_type, inputs, {"Out": out}, attrs)
    return out


@layer("crop", fluid_accepts={"x": "float32 float64"})
def crop(
    x: Variable,
    shape: Variable | Sequence[Any] | None = None,
    offsets: Variable | Sequence[Any] | None = None,
    name: str | None = None,
) -> Variable:
    """Crops a box from a tensor.

    Args:
        shape (Variable or list): a Variable with the shape of the box, or its extents, of which the first may be -1,
            the extent of `x`.
        offsets (Variable or list): where the box begins along each axis, as an int32 Variable or numbers; by default 0.

    Returns:
        Variable: the box, same type as `x`.

    Raises:
        TypeError: `x` is not a Variable, or has an unsupported element type, or `shape` is neither a Variable nor a
            list.
        penstock.ProgramError: the box extends beyond `x`.

    Example:
        x = fluid.data('x', [None, 3, 5])
        y = fluid.layers.crop(x, shape=[-1, 2, 3], offsets=[0, 1, 1])
    """
    helper = LayerHelper("crop", name=name).takes(x=x)
    inputs, attrs = {"X": x}, {}
    if isinstance(shape, Variable):
        inputs["Y"] = shape
    elif isinstance(shape, (list, tuple)):
        attrs["shape"] = list(shape)
    else:
        raise TypeError(f"crop: shape must be a Variable or a list, not {shape!r}")
    if isinstance(offsets, Variable):
        inputs["Offsets"] = offsets
    else:
        attrs["offsets"] = [0] * len(x.shape) if offsets is None else list(offsets)
    out = helper.create_variable_for_type_inference(x.dtype)
    helper.append_op("crop", inputs, {"Out": out}, attrs)
    return out


@layer("crop_tensor", fluid_accepts={"x": "int32 int64 float32 float64"})
def crop_tensor(
    x: Variable,
    shape: Variable | Sequence[Any] | None = None,
    offsets: Variable | Sequence[Any] | None = None,
    name: str | None = None,
) -> Variable:
    """Crops a box from a tensor; the extents of the box may be Variables.

    Args:
        shape (Variable or list): the extents of the box, as an int32 Variable or a list that may contain int32
            Variables; -1 extends the box to the end of `x`.
        offsets (Variable or list): where the box begins along each axis, in the same form; by default 0.

    Returns:
        Variable: the box, same type as `x`.

    Raises:
        TypeError: `x` is not a Variable, or has an unsupported element type, or `shape` is neither a Variable nor a
            list.
        ValueError: an extent is 0 or below -1, or an offset is below 0.
        penstock.ProgramError: the box extends beyond `x`.

    Example:
        x = fluid.data('x', [None, 3, 5])
        y = fluid.layers.crop_tensor(x, shape=[-1, 2, fluid.data('width', [1], 'int32')])
    """
    helper = LayerHelper("crop_tensor", name=name).takes(x=x)
    inputs: dict[str, Any] = {"X": x}
    attrs: dict[str, Any] = {}
    offsets = [0] * len(x.shape) if offsets is None else offsets
    out = helper.create_variable_for_type_inference(x.dtype)
    if isinstance(offsets, Variable):
        offsets.stop_gradient = True
        inputs["Offsets"], attrs["offsets"] = offsets, [-1] * len(x.shape)
    else:
        _require_numbers("offsets", offsets, lambda number: number >= 0, "at least 0")
        attrs["offsets"], variables = int_list(helper, offsets)
        if variables:
            inputs["OffsetsTensor"] = variables
    if isinstance(shape, Variable):
        shape.stop_gradient = True
        inputs["Shape"] = shape
    elif isinstance(shape, (list, tuple)):
        _require_numbers("shape", shape, lambda number: number > 0 or number == -1, "-1 or above 0")
        attrs["shape"], variables = int_list(helper, shape)
        if variables:
            attrs["shape"] = [0 if isinstance(one, Variable) else one for one in shape]
            inputs["ShapeTensor"] = variables
    else:
        raise TypeError(f"crop_tensor: shape must be a Variable or a list, not {shape!r}")
    helper.append_op("crop_tensor", inputs, {"Out": out}, attrs)
    return out


def _require_numbers(what: str, numbers: Iterable[Any], fits: Callable[[int], bool], rule: str) -> None:
    for one in numbers:
        if isinstance(one, int) and not fits(one):
            raise ValueError(f"crop_tensor: {what} holds {one}; it must be {rule}")


@op_layer("pad_constant_like", fluid_accepts={"y": "int32 int64 float32 float64"})
def pad_constant_like(x: Variable, y: Variable, pad_value: float = 0.0, name: str | None = None) -> Attrs:
    """Pads a tensor at the end of each axis to the shape of another tensor.

    Args:
        x: the tensor that provides the shape, same type as `y`.
        y: the tensor to pad, no larger than `x` along any axis.

    Returns:
        Variable: same shape as `x`, same type as `y`.

    Raises:
        penstock.ProgramError: `y` is larger than `x` along an axis, or has another type.

    Example:
        y = fluid.layers.pad_constant_like(fluid.data('x', [4, 5]), fluid.data('y', [3, 5]), pad_value=1.0)
    """
    return {"pad_value": float_attr(pad_value)}


@op_layer("expand_as", fluid_accepts={"x target_tensor": "bool int32 int64 float32 float64"})
def expand_as(x: Variable, target_tensor: Variable, name: str | None = None) -> Attrs:
    """Repeats a tensor until it has the shape of another tensor.

    Args:
        target_tensor: the tensor that provides the shape; each extent is a multiple of the extent of `x`.

    Returns:
        Variable: same shape as `target_tensor`, same type as `x`.

    Raises:
        penstock.ProgramError: the ranks differ, or an extent is not a multiple of the extent of `x`.

    Example:
        y = fluid.layers.expand_as(fluid.data('x', [2, 1]), fluid.data('like', [4, 3]))
    """


@op_layer("flip", fluid_accepts={"input": "bool int32 int64 float16 float32 float64"}, inputs={"X": "input"})
def flip(input: Variable, dims: list[int], name: str | None = None) -> Attrs:
    """Reverses the order of the elements along the given axes.

    Args:
        dims: the axes; negative: counted from the end.

    Raises:
        penstock.ProgramError: `input` lacks an axis.
        TypeError: `input` is not a Variable, or `dims` is not a list.

    Example:
        mirrored = fluid.layers.flip(fluid.data('image', [None, 3, 8, 8]), dims=[3])
    """
    require_kind("flip", list, dims=dims)
    return {"dims": list(dims)}


@layer()
def roll(input: Variable, shifts: int | Sequence[Any], dims: int | Sequence[Any] | None = None) -> Variable:
    """Shifts elements along the given axes; elements shifted beyond the end reappear at the start.

    Args:
        input (Variable): any shape and type.
        shifts (int or list): the number of elements to shift by, for each axis of `dims`.
        dims (int or list): the axes; None: the flattened `input` is shifted.

    Returns:
        Variable: same shape and type as `input`.

    Raises:
        penstock.ProgramError: `shifts` and `dims` differ in length, or `input` lacks an axis.

    Example:
        y = fluid.layers.roll(fluid.data('x', [3, 4]), shifts=[1, -1], dims=[0, 1])
    """
    LayerHelper("roll").takes(input=input)
    shifts = [shifts] if isinstance(shifts, int) else list(shifts)
    flat = dims is None
    x = reshape(input, [-1, 1]) if flat else input
    dims = [0] if dims is None else [dims] if isinstance(dims, int) else list(dims)
    out = _layer("roll", {"X": x}, {"dims": dims, "shifts": shifts})
    return reshape(out, list(input.shape), inplace=True)


@layer()
def unstack(x: Variable, axis: int = 0, num: int | None = None) -> list[Any]:
    """Splits a tensor along one axis into tensors without that axis.

    Args:
        x (Variable): at least 1 axis, any type.
        num (int): the number of results; by default the extent of the axis.

    Returns:
        list: `num` Variables of the shape of `x` without the axis, same type as `x`.

    Raises:
        ValueError: `num` is not given, and the axis does not exist or its extent is unknown.
        penstock.ProgramError: `x` lacks the axis, or its extent is not `num`.

    Example:
        steps = fluid.layers.unstack(fluid.data('x', [None, 5, 8]), axis=1)     # 5 of shape [-1, 8]
    """
    helper = LayerHelper("unstack").takes(x=x)
    if num is None:
        if axis is None or not -len(x.shape) <= axis < len(x.shape) or x.shape[axis] <= 0:
            raise ValueError(f"unstack: extent {axis} of x ({x.shape}) is not known; give num")
        num = x.shape[axis]
    outs = [helper.create_variable_for_type_inference(x.dtype) for _ in range(num)]
    helper.append_op("unstack", {"X": x}, {"Y": outs}, {"axis": axis, "num": num})
    return outs


def meshgrid(input: Sequence[Any], name: str | None = None) -> list[Any]:
    """Creates coordinate grids: each vector varies along its own axis and is repeated along the axes of the others.

    Args:
        input (list): up to 6 Variables of shape [n0], [n1], ..., any type.
        name (str): prefix of the results' names; by default the layer's.

    Returns:
        list: one Variable of shape [n0, n1, ...] for each vector, of its type.

    Raises:
        TypeError: `input` is not a list of Variables.
        ValueError: `input` is empty.
        penstock.ProgramError: an input is not a vector.

    Example:
        rows, columns = fluid.layers.meshgrid([fluid.data('r', [3]), fluid.data('c', [4])])
    """
    require_kind("meshgrid", list, input=input)
    helper = LayerHelper("meshgrid", name=name, input=input)
    vectors = helper.multiple_input()
    outs = [helper.create_variable_for_type_inference(one.dtype) for one in vectors]
    helper.append_op("meshgrid", {"X": vectors}, {"Out": outs})
    return outs


@layer(fluid_accepts={"input": "int32 int64 float16 float32 float64"})
def t(input: Variable, name: str | None = None) -> Variable:
    """Transposes a matrix; a vector or scalar is returned unchanged.

    Args:
        input (Variable): at most 2 axes.

    Returns:
        Variable: shape [columns, rows], same type as `input`.

    Raises:
        ValueError: `input` has more than 2 axes.

    Example:
        y = fluid.layers.t(fluid.data('x', [3, 4]))     # shape [4, 3]
    """
    helper = LayerHelper("t", name=name).takes(input=input)
    if len(input.shape) > 2:
        raise ValueError(f"t: the rank of input ({len(input.shape)}) must be at most 2")
    out = helper.create_variable_for_type_inference(input.dtype)
    shape = helper.create_variable_for_type_inference(input.dtype)
    if len(input.shape) < 2:
        return input
    helper.append_op("transpose2", {"X": input}, {"Out": out, "XShape": shape}, {"axis": [1, 0]})
    return out
