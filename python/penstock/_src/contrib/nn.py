"""Layers of fluid.contrib: parts of matrices, text matching, trees of items, fused ops."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy

from penstock._src.base.doc_texts import with_texts
from penstock._src.ir.variable import Variable
from penstock._src.layers.helper import LayerHelper
from penstock._src.layers.nn import padding_row
from penstock._src.layers.random import seed_variable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from penstock._src.parameters.param_attr import ParamAttr


def fused_elemwise_activation(
    x: Variable,
    y: Variable,
    functor_list: Sequence[str] | str,
    axis: int = -1,
    scale: float = 0.0,
    save_intermediate_out: bool = True,
) -> Variable:
    """Computes a sum or product of two tensors and an elementwise function in one op.

    Args:
        x (Variable): any shape, float32 or float64.
        y (Variable): same type as `x`; broadcast as in elementwise_add.
        functor_list (list[str] | str): the names of the outer and the inner function, as a list or joined by a comma.
            One is elementwise_add or elementwise_mul, the other scale, relu, tanh or sigmoid: ['relu',
            'elementwise_add'] is relu(x + y), ['elementwise_add', 'relu'] is x + relu(y).
        axis (int): the axis of `x` with which the first axis of `y` is aligned; -1 aligns the last axes.
        scale (float): the factor of the function scale.
        save_intermediate_out (bool): whether the result of the inner function is kept for the gradient.

    Returns:
        Variable: the shape of the larger of `x` and `y`, same type as `x`.

    Raises:
        TypeError: `x` or `y` is not a Variable.
        ValueError: `functor_list` does not hold two names.
        penstock.ProgramError: a function is not supported, or the shapes are incompatible.

    Example:
        x, y = fluid.data('x', [None, 4]), fluid.data('y', [4])
        z = fluid.contrib.layers.fused_elemwise_activation(x, y, ['relu', 'elementwise_add'])
    """
    helper = LayerHelper("fused_elemwise_activation").takes(x=x, y=y)
    names = functor_list.split(",") if isinstance(functor_list, str) else functor_list
    if not isinstance(names, list) or len(names) != 2:
        raise ValueError(f"fused_elemwise_activation: functor_list must hold two names, not {functor_list!r}")
    out = helper.create_variable_for_type_inference(x.dtype)
    between = helper.create_variable_for_type_inference(x.dtype)
    helper.append_op(
        "fused_elemwise_activation",
        {"X": x, "Y": y},
        {"Out": out, "IntermediateOut": between},
        {"axis": axis, "scale": scale, "save_intermediate_out": save_intermediate_out, "functor_list": names},
    )
    return out


def fused_embedding_seq_pool(
    input: Variable,
    size: Sequence[int],
    is_sparse: bool = False,
    padding_idx: int | None = None,
    combiner: str = "sum",
    param_attr: ParamAttr | None = None,
    dtype: str = "float32",
) -> Variable:
    """Looks up rows of a table and sums them over each sequence of ids.

    Args:
        input (Variable): the ids, which are row numbers, shape [n, 1] with sequences, int64.
        size (list[int]): [number of rows, width] of the table.
        is_sparse (bool): whether the table's gradient is selected rows.
        padding_idx (int | None): id whose row counts as zeros; negative: counted from the end.
        combiner (str): 'sum', the only supported value.
        param_attr (ParamAttr | None): attributes of the table.
        dtype (str): float32 or float64.

    Returns:
        Variable: shape [number of sequences, width], type `dtype`.

    Raises:
        TypeError: `input` is not a Variable.
        penstock.ProgramError: `combiner` has another value, or `input` has another shape.

    Example:
        ids = fluid.data('ids', [None, 1], 'int64', lod_level=1)
        y = fluid.contrib.layers.fused_embedding_seq_pool(ids, size=[20, 16])
    """
    helper = LayerHelper("fused_embedding_seq_pool", param_attr=param_attr).takes(input=input)
    padding_idx = padding_row("fused_embedding_seq_pool", padding_idx, size)
    table = helper.create_parameter(helper.param_attr, list(size), dtype)
    out = helper.create_variable_for_type_inference(dtype)
    helper.append_op(
        "fused_embedding_seq_pool",
        {"Ids": input, "W": table},
        {"Out": out},
        {"is_sparse": is_sparse, "combiner": combiner, "padding_idx": padding_idx},
    )
    return out


def match_matrix_tensor(
    x: Variable,
    y: Variable,
    channel_num: int,
    act: str | None = None,
    param_attr: ParamAttr | None = None,
    dtype: str = "float32",
    name: str | None = None,
) -> tuple[Variable, Variable]:
    """Computes bilinear matches of each word of a text with each word of another text, by several learned matrices.

    Args:
        x (Variable): shape [words, h] with sequences, float32 or float64.
        y (Variable): shape [words, h] with the same number of sequences, same type as `x`.
        channel_num (int): the number of matrices.
        act (str | None): name of an activation.
        param_attr (ParamAttr | None): attributes of the matrices, of shape [h, channel_num, h].
        dtype (str): the type of `x`.
        name (str | None): prefix of the names of the variables that the layer creates.

    Returns:
        tuple: (out, tmp). `out` has shape [n, 1] with a sequence for each pair of texts, same type as `x`: channel_num
        matrices with a row for each word of x and a column for each word of y. `tmp` holds a product for the gradient.

    Raises:
        TypeError: `x` or `y` is not a Variable.
        ValueError: `x` and `y` are not matrices of the same width.

    Example:
        x, y = (fluid.data(n, [None, 8], lod_level=1) for n in 'xy')
        out, tmp = fluid.contrib.layers.match_matrix_tensor(x, y, channel_num=3)
    """
    helper = LayerHelper("match_matrix_tensor", act=act, param_attr=param_attr, name=name).takes(x=x, y=y)
    if len(x.shape) != 2 or len(y.shape) != 2 or x.shape[1] != y.shape[1]:
        raise ValueError(f"match_matrix_tensor: x ({x.shape}) and y ({y.shape}) must be matrices of the same width")
    weight = helper.create_parameter(helper.param_attr, [x.shape[1], channel_num, y.shape[1]], dtype)
    out = helper.create_variable_for_type_inference(dtype)
    tmp = helper.create_variable_for_type_inference(dtype, stop_gradient=True)
    helper.append_op(
        "match_matrix_tensor", {"X": x, "Y": y, "W": weight}, {"Out": out, "Tmp": tmp}, {"dim_t": channel_num}
    )
    return helper.append_activation(out), tmp


def sequence_topk_avg_pooling(
    input: Variable, row: Variable, col: Variable, topks: Sequence[int], channel_num: int
) -> Variable:
    """Computes means of the largest elements of each row of matrices of different sizes.

    Args:
        input (Variable): the matrices, as returned by match_matrix_tensor, shape [n, 1] with sequences, float32 or
            float64.
        row (Variable): the lengths of its sequences are the numbers of rows of the matrices.
        col (Variable): the lengths of its sequences are the numbers of columns of the matrices.
        topks (list[int]): the numbers of elements that are averaged; the sum is divided by this number even if a row
            has fewer elements.
        channel_num (int): the number of matrices of a sequence.

    Returns:
        Variable: shape [rows of `row`, channel_num * len(topks)] with the sequences of `row`, same type as `input`.

    Raises:
        TypeError: `input`, `row` or `col` is not a Variable.
        penstock.ProgramError: a number is below 1; when the program runs: the sequences are incompatible.

    Example:
        x = fluid.data('x', [None, 1], lod_level=1)
        row, col = (fluid.data(n, [None, 4], lod_level=1) for n in ('row', 'col'))
        y = fluid.contrib.layers.sequence_topk_avg_pooling(x, row, col, topks=[1, 3], channel_num=5)
    """
    helper = LayerHelper("sequence_topk_avg_pooling").takes(input=input, row=row, col=col)
    out = helper.create_variable_for_type_inference(input.dtype)
    pos = helper.create_variable_for_type_inference(input.dtype, stop_gradient=True)
    helper.append_op(
        "sequence_topk_avg_pooling",
        {"X": input, "ROW": row, "COLUMN": col},
        {"Out": out, "pos": pos},
        {"topks": list(topks), "channel_num": channel_num},
    )
    return out


def shuffle_batch(x: Variable, seed: Variable | int | None = None) -> Variable:
    """Shuffles rows randomly.

    Args:
        x (Variable): shape [..., D], any type; the last axis runs along a row.
        seed (int | Variable | None): the initial seed, or an int64 Variable of one element that holds the seed; None:
            the main program's random_seed, or a seed drawn from NumPy.

    Returns:
        Variable: same shape and type as `x`.

    Raises:
        TypeError: `x` is not a Variable.

    Example:
        y = fluid.contrib.layers.shuffle_batch(fluid.data('x', [None, 4]))
    """
    helper = LayerHelper("shuffle_batch").takes(x=x)
    out = helper.create_variable_for_type_inference(x.dtype)
    index = helper.create_variable_for_type_inference("int64")
    if seed is None:
        seed = helper.main_program.random_seed or int(numpy.random.randint(-65536, 65535))
    attrs = {}
    if not isinstance(seed, Variable):
        attrs["startup_seed"] = seed
        seed = seed_variable(helper, "shuffle_batch_seed", seed)
    helper.append_op("shuffle_batch", {"X": x, "Seed": seed}, {"Out": out, "ShuffleIdx": index, "SeedOut": seed}, attrs)
    return out


def _partial(op_type: str, input: Sequence[Variable], start_index: int, length: int) -> Variable:
    helper = LayerHelper(op_type, input=input)
    inputs = helper.multiple_input()
    out = helper.create_variable_for_type_inference(inputs[0].dtype)
    helper.append_op(op_type, {"X": inputs}, {"Out": out}, {"start_index": start_index, "length": length})
    return out


_COLUMNS = {
    "columns": """Args:
    input (list[Variable]): matrices of one shape; float32, float64, int32 or int64.
    start_index (int): the first column; negative: counted from the end.
    length (int): the number of columns; -1: all columns to the end.""",
    "too_few": """Raises:
    penstock.ProgramError: the shapes differ, or the matrices have too few columns.""",
}


@with_texts(_COLUMNS)
def partial_concat(input: Sequence[Variable], start_index: int = 0, length: int = -1) -> Variable:
    """Concatenates a range of columns of several matrices.

    {columns}

    Returns:
        Variable: shape [rows, number of matrices * length], same type as `input`.

    {too_few}

    Example:
        x, y = fluid.data('x', [None, 4]), fluid.data('y', [None, 4])
        z = fluid.contrib.layers.partial_concat([x, y], start_index=1, length=2)    # shape [-1, 4]
    """
    return _partial("partial_concat", input, start_index, length)


@with_texts(_COLUMNS)
def partial_sum(input: Sequence[Variable], start_index: int = 0, length: int = -1) -> Variable:
    """Sums a range of columns over several matrices.

    {columns}

    Returns:
        Variable: shape [rows, length], same type as `input`.

    {too_few}

    Example:
        x, y = fluid.data('x', [None, 4]), fluid.data('y', [None, 4])
        z = fluid.contrib.layers.partial_sum([x, y], start_index=1, length=2)       # shape [-1, 2]
    """
    return _partial("partial_sum", input, start_index, length)
