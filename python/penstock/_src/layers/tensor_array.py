"""Tensor arrays, and sequences that are split into steps by a rank table."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock._src.ir import unique_name
from penstock._src.ir.types import VarType, to_dtype
from penstock._src.ir.variable import Variable
from penstock._src.layers.decorators import Attrs, layer, op_layer, op_layer_with_results
from penstock._src.layers.helper import LayerHelper

if TYPE_CHECKING:
    from typing import Any


def require_array(layer: str, array: object) -> None:
    if not isinstance(array, Variable) or array.type != VarType.LOD_TENSOR_ARRAY:
        raise TypeError(f"{layer}: the array must be a Variable of type LOD_TENSOR_ARRAY")


def create_array(dtype: str | VarType) -> Variable:
    """Declares an empty LoDTensorArray.

    Args:
        dtype (str | VarType): element type of the tensors.

    Returns:
        Variable: the array, of type LOD_TENSOR_ARRAY.

    Example:
        array = fluid.layers.create_array('float32')
    """
    helper = LayerHelper("array")
    return _array(helper, helper.name + ".out", dtype)


def _array(helper: LayerHelper, name: str, dtype: Any) -> Variable:
    return helper.create_variable(name=name, type=VarType.LOD_TENSOR_ARRAY, dtype=to_dtype(dtype))


@layer(fluid_accepts={"i": "int64"})
def array_write(x: Variable, i: Variable, array: Variable | None = None) -> Variable:
    """Writes element i of an array, which grows if necessary.

    Args:
        x (Variable): the element, any shape and type.
        i (Variable): the index, shape [1].
        array (Variable | None): the array, of type LOD_TENSOR_ARRAY; None: a new array.

    Returns:
        Variable: the array, of type LOD_TENSOR_ARRAY.

    Raises:
        TypeError: `x` or `i` is not a Variable, or `array` is not a LOD_TENSOR_ARRAY.

    Example:
        x = fluid.layers.fill_constant([2], 'float32', 1.0)
        i = fluid.layers.fill_constant([1], 'int64', 0)
        array = fluid.layers.array_write(x, i)
    """
    helper = LayerHelper("array_write").takes(x=x)
    if array is None:
        array = _array(helper, helper.name + ".out", x.dtype)
    require_array("array_write", array)
    helper.append_op("write_to_array", {"X": x, "I": i}, {"Out": array})
    return array


@op_layer("read_from_array", fluid_accepts={"i": "int64"}, inputs={"X": "array"})
def array_read(array: Variable, i: Variable) -> Attrs:
    """Returns element i of an array.

    Args:
        array: the array, of type LOD_TENSOR_ARRAY.
        i: the index, shape [1].

    Returns:
        Variable: the element, same element type as `array`.

    Raises:
        TypeError: `array` or `i` is not a Variable, or `array` is not a LOD_TENSOR_ARRAY.

    Example:
        x = fluid.layers.fill_constant([2], 'float32', 1.0)
        i = fluid.layers.fill_constant([1], 'int64', 0)
        y = fluid.layers.array_read(fluid.layers.array_write(x, i), i)
    """
    require_array("array_read", array)
    return None


@op_layer("lod_array_length", inputs={"X": "array"}, stop_gradient=True)
def array_length(array: Variable) -> Attrs:
    """Returns the number of elements of an array.

    Args:
        array: the array, of type LOD_TENSOR_ARRAY.

    Returns:
        Variable: shape [1], int64.

    Raises:
        TypeError: `array` is not a Variable of type LOD_TENSOR_ARRAY.

    Example:
        count = fluid.layers.array_length(fluid.layers.create_array('float32'))
    """
    require_array("array_length", array)
    return None


@layer()
def tensor_array_to_tensor(
    input: Variable, axis: int = 1, name: str | None = None, use_stack: bool = False
) -> tuple[Variable, Variable]:
    """Joins the elements of an array along one axis.

    Args:
        input (Variable): the array, of type LOD_TENSOR_ARRAY.
        axis (int): the axis along which the elements are joined.
        use_stack (bool): stack the elements along a new axis instead of concatenating them.

    Returns:
        tuple[Variable, Variable]: the tensor, same element type as `input`, and the extent of each element along the
            axis, int32.

    Raises:
        TypeError: `input` is not a Variable, or not a LOD_TENSOR_ARRAY.

    Example:
        x = fluid.layers.fill_constant([2, 3], 'float32', 1.0)
        i = fluid.layers.fill_constant([1], 'int64', 0)
        joined, extents = fluid.layers.tensor_array_to_tensor(fluid.layers.array_write(x, i), axis=1)
    """
    helper = LayerHelper("tensor_array_to_tensor", name=name).takes(input=input)
    require_array("tensor_array_to_tensor", input)
    out = helper.create_variable_for_type_inference(input.dtype)
    index = helper.create_variable_for_type_inference("int32")
    helper.append_op(
        "tensor_array_to_tensor", {"X": input}, {"Out": out, "OutIndex": index}, {"axis": axis, "use_stack": use_stack}
    )
    return out, index


def lod_rank_table(x: Variable, level: int = 0) -> Variable:
    """Sorts sequences by length, the longest first.

    Args:
        x (Variable): shape [rows, ...] with sequences (lod_level of 1 or more), any type.
        level (int): the level whose sequences are sorted.

    Returns:
        Variable: the rank table, of type LOD_RANK_TABLE.

    Example:
        x = fluid.data('x', [None, 4], lod_level=1)
        table = fluid.layers.control_flow.lod_rank_table(x)
    """
    helper = LayerHelper("lod_rank_table")
    table = helper.create_variable(type=VarType.LOD_RANK_TABLE, name=unique_name.generate("lod_rank_table"))
    helper.append_op("lod_rank_table", {"X": x}, {"Out": table}, {"level": level})
    return table


@op_layer("max_sequence_len", inputs={"RankTable": "rank_table"}, prefix="max_seqence_len")
def max_sequence_len(rank_table: Variable) -> Attrs:
    """Returns the length of the longest sequence of a rank table.

    Args:
        rank_table: the rank table, of type LOD_RANK_TABLE.

    Returns:
        Variable: shape [1], int64.

    Example:
        x = fluid.data('x', [None, 4], lod_level=1)
        longest = fluid.layers.control_flow.max_sequence_len(fluid.layers.control_flow.lod_rank_table(x))
    """


@layer()
def lod_tensor_to_array(x: Variable, table: Variable) -> Variable:
    """Splits sequences into steps: element t of the array holds row t of each sequence that is long enough.

    Args:
        x (Variable): shape [rows, ...] with sequences, any type.
        table (Variable): the rank table of `x`, of type LOD_RANK_TABLE; it gives the order of the rows of a step.

    Returns:
        Variable: the array, of type LOD_TENSOR_ARRAY.

    Example:
        x = fluid.data('x', [None, 4], lod_level=1)
        steps = fluid.layers.control_flow.lod_tensor_to_array(x, fluid.layers.control_flow.lod_rank_table(x))
    """
    helper = LayerHelper("lod_tensor_to_array").takes(x=x)
    array = _array(helper, unique_name.generate("lod_tensor_to_array"), x.dtype)
    helper.append_op("lod_tensor_to_array", {"X": x, "RankTable": table}, {"Out": array})
    return array


@op_layer("array_to_lod_tensor", inputs={"RankTable": "table"})
def array_to_lod_tensor(x: Variable, table: Variable) -> Attrs:
    """Joins steps into sequences; the inverse of lod_tensor_to_array.

    Args:
        x: the array, of type LOD_TENSOR_ARRAY.
        table: the rank table that split the sequences, of type LOD_RANK_TABLE.

    Returns:
        Variable: shape [rows, ...] with sequences, same element type as `x`.

    Example:
        x = fluid.data('x', [None, 4], lod_level=1)
        table = fluid.layers.control_flow.lod_rank_table(x)
        steps = fluid.layers.control_flow.lod_tensor_to_array(x, table)
        y = fluid.layers.control_flow.array_to_lod_tensor(steps, table)
    """


@op_layer("shrink_rnn_memory", inputs={"RankTable": "table"})
def shrink_memory(x: Variable, i: Variable, table: Variable) -> Attrs:
    """Keeps the rows of the sequences that have an element in step i.

    Args:
        x: shape [sequences, ...]: a row for each sequence, in the order of the table.
        i: the step, shape [1], int64.
        table: the rank table, of type LOD_RANK_TABLE.

    Returns:
        Variable: the first rows of `x`, same type as `x`.

    Example:
        x = fluid.data('x', [None, 4], lod_level=1)
        state = fluid.data('state', [None, 8])
        i = fluid.layers.fill_constant([1], 'int64', 0)
        rows = fluid.layers.control_flow.shrink_memory(state, i, fluid.layers.control_flow.lod_rank_table(x))
    """


@op_layer("reorder_lod_tensor_by_rank", inputs={"RankTable": "rank_table"})
def reorder_lod_tensor_by_rank(x: Variable, rank_table: Variable) -> Attrs:
    """Puts sequences into the order of a rank table.

    Args:
        x: shape [rows, ...] with sequences, or a row for each sequence; any type.
        rank_table: the rank table, of type LOD_RANK_TABLE.

    Returns:
        Variable: the sequences of `x` in that order, same type as `x`.

    Raises:
        TypeError: `x` or `rank_table` is not a Variable, or `rank_table` has another type.

    Example:
        x = fluid.data('x', [None, 4], lod_level=1)
        y = fluid.layers.reorder_lod_tensor_by_rank(x, fluid.layers.control_flow.lod_rank_table(x))
    """
    if not isinstance(rank_table, Variable) or rank_table.type != VarType.LOD_RANK_TABLE:
        raise TypeError("reorder_lod_tensor_by_rank: rank_table must be a Variable of type LOD_RANK_TABLE")
    return None


@op_layer_with_results("split_lod_tensor", "OutTrue OutFalse", inputs={"X": "input"})
def split_lod_tensor(input: Variable, mask: Variable, level: int = 0) -> Attrs:
    """Splits rows, or sequences, by a mask.

    Args:
        input: shape [rows, ...], with or without sequences; any type.
        mask: shape [N, 1], bool: one value for each row or sequence.
        level: the level of the sequences.

    Returns:
        tuple[Variable, Variable]: the rows or sequences where the mask is true, and the others; same type as `input`.

    Example:
        x = fluid.data('x', [None, 4])
        mask = fluid.data('mask', [None, 1], 'bool')
        held, others = fluid.layers.control_flow.split_lod_tensor(x, mask)
    """


@op_layer("merge_lod_tensor", inputs={"InTrue": "in_true", "InFalse": "in_false"})
def merge_lod_tensor(in_true: Variable, in_false: Variable, x: Variable, mask: Variable, level: int = 0) -> Attrs:
    """Merges two parts in the original order; the inverse of split_lod_tensor.

    Args:
        in_true: the rows or sequences where the mask is true, shape [rows, ...], any type.
        in_false: the others, same type as `in_true`.
        x: the tensor that was split, any shape; the result has its sequences.
        mask: shape [N, 1], bool.
        level: the level of the sequences.

    Returns:
        Variable: shape [rows, ...], same type as `in_true`.

    Example:
        x = fluid.data('x', [None, 4])
        mask = fluid.data('mask', [None, 1], 'bool')
        held, others = fluid.layers.control_flow.split_lod_tensor(x, mask)
        y = fluid.layers.control_flow.merge_lod_tensor(held, others, x, mask)
    """
