"""Layers over sequences of rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock._src.ir.variable import Variable
from penstock._src.layers.decorators import Attrs, layer, op_layer
from penstock._src.layers.helper import LayerHelper, require_kind, require_rank
from penstock._src.parameters.param_attr import ParamAttr

if TYPE_CHECKING:
    from collections.abc import Sequence

    from penstock._src.parameters.param_attr import ParamAttr


@layer("sequence_pool", fluid_accepts={"input": "float32 float64"})
def sequence_pool(input: Variable, pool_type: str, is_test: bool = False, pad_value: float = 0.0) -> Variable:
    """Reduces each sequence to one row.

    Args:
        input (Variable): shape [rows, ...] with sequences.
        pool_type (str): 'sum', 'average', 'sqrt' (the sum divided by the square root of the length), 'max', 'first' or
            'last'.
        is_test (bool): do not keep the values that a gradient needs.
        pad_value (float): the elements of an empty sequence's row.

    Returns:
        Variable: shape [number of sequences, ...], same type as `input`.

    Raises:
        TypeError: `input` is not a Variable, or has an unsupported element type, or `pool_type` is not a str.

    Example:
        x = fluid.data('x', [None, 8], lod_level=1)
        y = fluid.layers.sequence_pool(x, 'average')
    """
    helper = LayerHelper("sequence_pool").takes(input=input)
    require_kind("sequence_pool", str, pool_type=pool_type)
    out = helper.create_variable_for_type_inference(input.dtype)
    max_index = helper.create_variable_for_type_inference(input.dtype)
    helper.append_op(
        "sequence_pool",
        {"X": input},
        {"Out": out, "MaxIndex": max_index},
        {"pooltype": pool_type.upper(), "is_test": is_test, "pad_value": pad_value},
    )
    if pool_type == "max":
        max_index.stop_gradient = True
    return out


@layer(fluid_accepts={"input": "float32 float64"})
def sequence_first_step(input: Variable) -> Variable:
    """Takes the first row of each sequence.

    Args:
        input (Variable): shape [rows, ...] with sequences.

    Returns:
        Variable: shape [number of sequences, ...], same type as `input`.

    Example:
        x = fluid.data('x', [None, 8], lod_level=1)
        y = fluid.layers.sequence_first_step(x)
    """
    return sequence_pool(input, "first")


@layer(fluid_accepts={"input": "float32 float64"}, like=sequence_first_step)
def sequence_last_step(input: Variable) -> Variable:
    """Takes the last row of each sequence.

    Example:
        x = fluid.data('x', [None, 8], lod_level=1)
        y = fluid.layers.sequence_last_step(x)
    """
    return sequence_pool(input, "last")


@op_layer("sequence_softmax", fluid_accepts={"input": "float32 float64"}, inputs={"X": "input"})
def sequence_softmax(input: Variable, use_cudnn: bool = False, name: str | None = None) -> Attrs:
    """Computes softmax over the rows of each sequence.

    Args:
        input: shape [rows, 1] or [rows], with sequences.

    Returns:
        Variable: same shape, type and sequences as `input`.

    Example:
        x = fluid.data('x', [None, 1], lod_level=1)
        weights = fluid.layers.sequence_softmax(x)
    """


@layer("sequence_conv", fluid_accepts={"input": "float32 float64"})
def sequence_conv(
    input: Variable,
    num_filters: int,
    filter_size: int = 3,
    filter_stride: int = 1,
    padding: bool = True,
    padding_start: int | None = None,
    bias_attr: ParamAttr | bool | None = None,
    param_attr: ParamAttr | None = None,
    act: str | None = None,
    name: str | None = None,
) -> Variable:
    """Convolves each sequence with learned filters over neighbouring rows.

    Args:
        input: shape [rows, D] with sequences.
        num_filters: width of the result.
        filter_size: number of rows that a filter covers.
        filter_stride: must be 1.
        padding: has no effect; rows outside the sequence always count as zeros.
        padding_start: first row that a filter covers, relative to the current row; None: the filter is centred.
        param_attr: the filters, of shape [filter_size * D, num_filters].

    Returns:
        Variable: shape [rows, num_filters], same type and sequences as `input`.

    Raises:
        ValueError: `input` has fewer than 2 axes.

    Example:
        x = fluid.data('x', [None, 8], lod_level=1)
        y = fluid.layers.sequence_conv(x, num_filters=4)
    """
    helper = LayerHelper("sequence_conv", param_attr=param_attr, bias_attr=bias_attr, act=act, name=name)
    helper.takes(input=input)
    require_rank("sequence_conv", "input", input, 2)
    weight = helper.create_parameter(helper.param_attr, [filter_size * input.shape[1], num_filters], input.dtype)
    out = helper.create_variable_for_type_inference(input.dtype)
    helper.append_op(
        "sequence_conv",
        {"X": input, "Filter": weight},
        {"Out": out},
        {
            "contextStride": filter_stride,
            "contextStart": -(filter_size // 2) if padding_start is None else padding_start,
            "contextLength": filter_size,
        },
    )
    return helper.append_activation(helper.append_bias_op(out))


@layer("row_conv", fluid_accepts={"input": "float32 float64"})
def row_conv(
    input: Variable, future_context_size: int, param_attr: ParamAttr | None = None, act: str | None = None
) -> Variable:
    """Computes a weighted sum of each row and the rows that follow it (lookahead convolution).

    Args:
        input (Variable): shape [rows, D] with sequences, or [N, length, D].
        future_context_size (int): number of following rows that are added.
        param_attr (ParamAttr | None): the weights, of shape [future_context_size + 1, D].

    Returns:
        Variable: same shape, type and sequences as `input`.

    Example:
        x = fluid.data('x', [None, 8], lod_level=1)
        y = fluid.layers.row_conv(x, future_context_size=2)

    Reference:
        Amodei et al., Deep Speech 2, ICML 2016.
    """
    helper = LayerHelper("row_conv", param_attr=param_attr, act=act).takes(input=input)
    weight = helper.create_parameter(helper.param_attr, [future_context_size + 1, input.shape[-1]], input.dtype)
    out = helper.create_variable_for_type_inference(input.dtype)
    helper.append_op("row_conv", {"X": input, "Filter": weight}, {"Out": out})
    return helper.append_activation(out)


@layer("sequence_concat", fluid_accepts={"input": "int64 float32 float64"})
def sequence_concat(input: Sequence[Variable], name: str | None = None) -> Variable:
    """Concatenates the i-th sequences of all inputs, for each i.

    Args:
        input (list[Variable]): shape [rows, ...] each, with the same number of sequences.

    Returns:
        Variable: shape [sum of the rows, ...] with the same number of sequences, the type of the inputs.

    Raises:
        TypeError: `input` is not a list, or one of its elements is not a Variable or has an unsupported element type.

    Example:
        x = fluid.data('x', [None, 8], lod_level=1)
        y = fluid.data('y', [None, 8], lod_level=1)
        z = fluid.layers.sequence_concat([x, y])
    """
    require_kind("sequence_concat", list, input=input)
    helper = LayerHelper("sequence_concat", input=input, name=name)
    out = helper.create_variable_for_type_inference(helper.multiple_input()[0].dtype)
    helper.append_op("sequence_concat", {"X": input}, {"Out": out})
    return out


@op_layer("sequence_expand", fluid_accepts={"x": "int32 int64 float32 float64"})
def sequence_expand(x: Variable, y: Variable, ref_level: int = -1, name: str | None = None) -> Attrs:
    """Repeats each row or sequence of `x` as often as the corresponding sequence of `y` has elements.

    Args:
        x: shape [rows, ...], without sequences or with one level of them.
        y: any shape and type, with sequences.
        ref_level: the level of `y` whose sequences are counted; -1: the innermost.

    Returns:
        Variable: shape [repeated rows, ...], same type as `x`.

    Example:
        x = fluid.data('x', [None, 8])
        y = fluid.data('y', [None, 1], lod_level=1)
        z = fluid.layers.sequence_expand(x, y)
    """


@op_layer("sequence_expand_as", fluid_accepts={"x": "int32 int64 float32 float64"})
def sequence_expand_as(x: Variable, y: Variable, name: str | None = None) -> Attrs:
    """Repeats row i of `x` as often as sequence i of `y` has rows.

    Args:
        x: shape [sequences of `y`, ...].
        y: any shape and type, with sequences.

    Returns:
        Variable: shape [rows of `y`, ...] with the sequences of `y`, same type as `x`.

    Example:
        x = fluid.data('x', [None, 8])
        y = fluid.data('y', [None, 1], lod_level=1)
        z = fluid.layers.sequence_expand_as(x, y)
    """


@op_layer(
    "sequence_slice",
    fluid_accepts={"input": "int32 int64 float32 float64", "offset length": "int64"},
    inputs={"X": "input"},
)
def sequence_slice(input: Variable, offset: Variable, length: Variable, name: str | None = None) -> Attrs:
    """Extracts a slice of each sequence.

    Args:
        input: shape [rows, ...] with sequences.
        offset: shape [sequences, 1]: the first row of each slice.
        length: shape [sequences, 1]: the number of rows of each slice.

    Returns:
        Variable: shape [rows, ...] with the slices as sequences, same type as `input`.

    Example:
        x = fluid.data('x', [None, 8], lod_level=1)
        offset = fluid.data('offset', [None, 1], 'int64')
        length = fluid.data('length', [None, 1], 'int64')
        y = fluid.layers.sequence_slice(x, offset, length)
    """
    offset.stop_gradient = length.stop_gradient = True
    return None


@op_layer("sequence_reshape", fluid_accepts={"input": "int32 int64 float32 float64"}, inputs={"X": "input"})
def sequence_reshape(input: Variable, new_dim: int) -> Attrs:
    """Changes the width of the rows; sequences become longer or shorter accordingly.

    Args:
        input: shape [rows, D] with sequences.
        new_dim: the new width; it must divide the number of elements of each sequence.

    Returns:
        Variable: shape [rows * D / new_dim, new_dim], same type as `input`.

    Example:
        x = fluid.data('x', [None, 8], lod_level=1)
        y = fluid.layers.sequence_reshape(x, new_dim=4)
    """


@op_layer(
    "sequence_scatter",
    fluid_accepts={"input updates": "int32 int64 float32 float64", "index": "int32 int64"},
    inputs={"X": "input", "Ids": "index"},
)
def sequence_scatter(input: Variable, index: Variable, updates: Variable, name: str | None = None) -> Attrs:
    """Adds the updates of sequence i to elements of row i, for each i.

    Args:
        input: shape [N, D].
        index: shape [updates, 1] with N sequences: positions in the row.
        updates: shape [updates, 1] with the same sequences, same type as `input`.

    Returns:
        Variable: shape [N, D], same type as `input`.

    Example:
        x = fluid.data('x', [None, 6])
        index = fluid.data('index', [None, 1], 'int64', lod_level=1)
        updates = fluid.data('updates', [None, 1], lod_level=1)
        y = fluid.layers.sequence_scatter(x, index, updates)
    """


@op_layer("sequence_enumerate", typed="input", inputs={"X": "input"}, stop_gradient=True)
def sequence_enumerate(input: Variable, win_size: int, pad_value: int = 0, name: str | None = None) -> Attrs:
    """Collects, for each row, the window of `win_size` ids that begins at the row.

    Args:
        input: shape [rows, 1] with sequences.
        pad_value: replaces ids beyond the end of the sequence.

    Returns:
        Variable: shape [rows, win_size], same type and sequences as `input`.

    Example:
        x = fluid.data('x', [None, 1], 'int64', lod_level=1)
        windows = fluid.layers.sequence_enumerate(x, win_size=2)
    """


@op_layer("sequence_reverse", fluid_accepts={"x": "int8 int32 int64 float32 float64"}, output="Y")
def sequence_reverse(x: Variable, name: str | None = None) -> Attrs:
    """Reverses the rows of each sequence.

    Args:
        x: shape [rows, ...] with sequences.

    Returns:
        Variable: same shape, type and sequences as `x`.

    Example:
        x = fluid.data('x', [None, 8], lod_level=1)
        y = fluid.layers.sequence_reverse(x)
    """
