"""Layers that change the shape of tensors: reshaping, transposition, removal and insertion of axes, splitting."""

from __future__ import annotations

import numbers
import operator
from typing import TYPE_CHECKING

from penstock._src.ir.argument_types import ArgumentError
from penstock._src.ir.variable import Variable
from penstock._src.layers.decorators import Attrs, layer, op_layer
from penstock._src.layers.helper import LayerHelper, require_kind, require_variables
from penstock._src.layers.tensor import int_list

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import Any


_MOST_PARTS = 2**16  # of split; each is a Variable


@op_layer("transpose2", fluid_accepts={"x": "int32 int64 float16 float32 float64"}, prefix="transpose")
def transpose(x: Variable, perm: list[int], name: str | None = None) -> Attrs:
    """Reorders the axes: axis i of the result is axis perm[i] of `x`.

    Args:
        perm: a permutation of the axes of `x`.

    Returns:
        Variable: the shape of `x` permuted, same type as `x`.

    Raises:
        TypeError: `x` is not a Variable, or has an unsupported element type, or `perm` is not a list.
        ValueError: `perm` is not a permutation of the axes.

    Example:
        x = fluid.data('x', [2, 3, 4])
        assert fluid.layers.transpose(x, [1, 0, 2]).shape == (3, 2, 4)
    """
    require_kind("transpose", list, perm=perm)
    if sorted(perm) != list(range(len(x.shape))):
        raise ValueError(f"perm must be a permutation of the {len(x.shape)} axes of x, not {list(perm)}")
    return {"axis": list(perm)}


@layer("reshape", fluid_accepts={"x": "int32 int64 float16 float32 float64"})
def reshape(
    x: Variable,
    shape: Sequence[int | Variable] | Variable,
    actual_shape: Variable | None = None,
    act: str | None = None,
    inplace: bool = False,
    name: str | None = None,
) -> Variable:
    """Changes the shape of a tensor; the elements and their order stay the same.

    Args:
        shape (list[int | Variable] | Variable): the new extents. At most one may be -1, which is computed from the
            others; 0 keeps the extent of `x` at the same axis. Extents that are known only at run time are int32
            Variables of shape [1].
        actual_shape (Variable | None): shape [rank], int32; takes precedence over `shape` at run time.
        inplace (bool): write the result to `x` itself.

    Returns:
        Variable: the new shape, same type as `x`.

    Raises:
        ValueError: -1 occurs more than once, an extent is below -1, or 0 occurs at an axis that `x` does not have.
        penstock.ProgramError: the number of elements would change.

    Example:
        x = fluid.data('x', [2, 4, 6])
        assert fluid.layers.reshape(x, [-1, 0, 3, 2]).shape == (2, 4, 3, 2)
    """
    helper = LayerHelper("reshape2", act=act, name=name).takes(x=x)
    inputs: dict[str, Any] = {"X": x}
    given_shape: Sequence[int | Variable]
    if isinstance(shape, Variable):
        actual_shape, given_shape = shape, []
    else:
        given_shape = shape
    shape, variables = int_list(helper, given_shape)
    unknown = sum(not isinstance(one, Variable) and one == -1 for one in given_shape)
    if unknown > 1:
        raise ArgumentError(f"reshape: shape holds -1 {unknown} times: {shape}")
    if min(shape, default=0) < -1:
        raise ArgumentError(f"reshape: an extent of shape must be at least -1: {shape}")
    for place in range(len(x.shape), len(shape)):
        if shape[place] == 0:
            raise ArgumentError(f"reshape: extent {place} of shape is 0, but x has {len(x.shape)} axes only")
    if variables:
        inputs["ShapeTensor"] = variables
    elif actual_shape is not None:
        require_variables("reshape", actual_shape=actual_shape)
        actual_shape.stop_gradient = True
        inputs["Shape"] = actual_shape
    out = x if inplace else helper.create_variable_for_type_inference(x.dtype)
    xshape = helper.create_variable_for_type_inference(x.dtype)
    helper.append_op("reshape2", inputs, {"Out": out, "XShape": xshape}, {"shape": shape})
    return helper.append_activation(out)


@op_layer("flatten2", fluid_accepts={"x": "int8 int32 int64 float32 float64"})
def flatten(x: Variable, axis: int = 1, name: str | None = None) -> Attrs:
    """Flattens a tensor to a matrix.

    Args:
        axis: the axes before it form the rows, the others the columns; from 0 to the rank of `x`.

    Returns:
        Variable: shape [rows, columns], same type as `x`.

    Raises:
        ValueError: `axis` is out of range.

    Example:
        x = fluid.data('x', [4, 4, 3])
        assert fluid.layers.flatten(x, axis=2).shape == (16, 3)
    """
    if not 0 <= axis <= len(x.shape):
        raise ValueError(f"axis must be in [0, {len(x.shape)}], not {axis!r}")
    return None


@op_layer("squeeze2", fluid_accepts={"input": "int8 int32 int64 float16 float32 float64"}, inputs={"X": "input"})
def squeeze(input: Variable, axes: list[int], name: str | None = None) -> Attrs:
    """Removes axes of extent 1.

    Args:
        axes: the axes to remove, negative: counted from the end; empty: all axes of extent 1.

    Returns:
        Variable: the shape of `input` without the axes, same type as `input`.

    Example:
        x = fluid.data('x', [5, 1, 10])
        assert fluid.layers.squeeze(x, axes=[1]).shape == (5, 10)
    """
    return {"axes": list(axes)}


@layer()
def unsqueeze(input: Variable, axes: int | Sequence[int | Variable] | Variable, name: str | None = None) -> Variable:
    """Inserts axes of extent 1, one after the other in the given order.

    Args:
        input (Variable): any shape and type.
        axes (int | list[int | Variable] | Variable): positions in the result; Variables are int32, and have shape [1]
            in a list.

    Returns:
        Variable: the shape of `input` with the new axes, same type as `input`.

    Example:
        x = fluid.data('x', [5, 10])
        assert fluid.layers.unsqueeze(x, axes=[1]).shape == (5, 1, 10)
    """
    helper = LayerHelper("unsqueeze2", name=name).takes(input=input)
    if isinstance(axes, Variable):
        axes.stop_gradient = True
        return _with_axes("unsqueeze2", helper, input, [], AxesTensor=axes)
    axes, variables = int_list(helper, [axes] if isinstance(axes, int) else axes)
    if variables:
        return _with_axes("unsqueeze2", helper, input, [], AxesTensorList=variables)
    return _with_axes("unsqueeze2", helper, input, axes)


def _with_axes(op_type: str, helper: LayerHelper, input: Variable, axes: Iterable[int], **tensors: Any) -> Variable:
    out = helper.create_variable_for_type_inference(input.dtype)
    xshape = helper.create_variable_for_type_inference(input.dtype)
    helper.append_op(op_type, dict(tensors, X=input), {"Out": out, "XShape": xshape}, {"axes": list(axes)})
    return out


@layer()
def split(
    input: Variable, num_or_sections: int | Sequence[int | Variable], dim: int | Variable = -1, name: str | None = None
) -> list[Variable]:
    """Splits a tensor along one axis.

    Args:
        input (Variable): any shape and type.
        num_or_sections (int | list[int | Variable]): number of equal parts, or the extent of each part; one extent may
            be -1 and is then computed from the others.
        dim (int | Variable): the axis; negative: counted from the end.

    Returns:
        list[Variable]: the parts, same type as `input`.

    Raises:
        penstock.ProgramError: the extents of the parts do not sum to the extent of the axis.

    Example:
        x = fluid.data('x', [3, 9, 5])
        first, second = fluid.layers.split(x, [4, 5], dim=1)
        assert second.shape == (3, 5, 5)
    """
    helper = LayerHelper("split", name=name).takes(input=input)
    inputs: dict[str, Any] = {"X": input}
    attrs: dict[str, Any] = {}
    parts: Any = num_or_sections
    if isinstance(dim, Variable):
        dim.stop_gradient = True
        inputs["AxisTensor"] = dim
    else:
        attrs["axis"] = dim + len(input.shape) if dim < 0 else dim
    if isinstance(num_or_sections, numbers.Integral):
        count = attrs["num"] = operator.index(num_or_sections)
        if count > _MOST_PARTS:
            raise ArgumentError(f"split: num_or_sections must be at most {_MOST_PARTS}, not {count}")
    else:
        count = len(parts)
        attrs["sections"], variables = int_list(helper, parts)
        if variables:
            inputs["SectionsTensorList"] = variables
    outs = [helper.create_variable_for_type_inference(input.dtype) for _ in range(count)]
    helper.append_op("split", inputs, {"Out": outs}, attrs)
    return outs
