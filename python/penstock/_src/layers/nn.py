"""Layers with parameters, and the functions commonly used between them."""

from __future__ import annotations

import math
import numbers
from typing import TYPE_CHECKING

from penstock._src.base.errors import program_error
from penstock._src.base.row_policy import row_policy
from penstock._src.ir import framework
from penstock._src.ir.argument_types import ArgumentError
from penstock._src.ir.types import VarType, float_attr, to_extents
from penstock._src.ir.variable import Variable
from penstock._src.layers.decorators import Attrs, layer, op_layer, op_layer_with_results
from penstock._src.layers.helper import LayerHelper, require_variables
from penstock._src.parameters.initializer import Constant

if TYPE_CHECKING:
    import os
    from collections.abc import Sequence
    from typing import Any

    from penstock._src.parameters.param_attr import ParamAttr


@layer("fc", typed="input")
def fc(
    input: Variable | Sequence[Variable],
    size: int,
    num_flatten_dims: int = 1,
    param_attr: ParamAttr | Sequence[Any] | None = None,
    bias_attr: ParamAttr | bool | None = None,
    act: str | None = None,
    name: str | None = None,
) -> Variable:
    """Computes a fully connected layer: act(sum over i of flatten(input_i) @ W_i + b).

    Each input is flattened to a matrix: its first `num_flatten_dims` axes form the rows, the others the columns.

    Args:
        input (Variable | list[Variable]): shape [N, ...]; each input has its own weight.
        size (int): number of columns of the result.
        num_flatten_dims (int): number of leading axes of `input` that form the rows; -1: all but the last.
        param_attr (ParamAttr | list | None): the weights, of shape [columns of the input, size].
        bias_attr (ParamAttr | bool | None): the bias, of shape [size]; False: no bias.

    Returns:
        Variable: shape [first `num_flatten_dims` extents of the input..., size], same type as `input`.

    Raises:
        TypeError: `input` is not a Variable or a list of Variables, or has an unsupported element type.
        ValueError: `input` is an empty list.

    Example:
        x = fluid.data('x', [None, 4])
        y = fluid.layers.fc(x, size=2, act='relu')
        assert y.shape == (-1, 2)
    """
    helper = LayerHelper("fc", input=input, param_attr=param_attr, bias_attr=bias_attr, act=act, name=name)
    dtype = helper.input_dtype()
    products = []
    for one, attr in helper.iter_inputs_and_params():
        shape = one.shape
        if num_flatten_dims == -1:
            num_flatten_dims = len(shape) - 1
        weight = helper.create_parameter(attr, [math.prod(shape[num_flatten_dims:]), size], dtype)
        product = helper.create_variable_for_type_inference(dtype)
        helper.append_op(
            "mul", {"X": one, "Y": weight}, {"Out": product}, {"x_num_col_dims": num_flatten_dims, "y_num_col_dims": 1}
        )
        products.append(product)
    if len(products) == 1:
        before_bias = products[0]
    else:
        before_bias = helper.create_variable_for_type_inference(dtype)
        helper.append_op("sum", {"X": products}, {"Out": before_bias}, {"use_mkldnn": False})
    return helper.append_activation(helper.append_bias_op(before_bias, dim_start=num_flatten_dims))


def embedding(
    input: Variable,
    size: Sequence[int],
    is_sparse: bool = False,
    is_distributed: bool = False,
    padding_idx: int | None = None,
    param_attr: ParamAttr | None = None,
    dtype: str | VarType = "float32",
    entry: str | None = None,
    evict: str | Sequence[str] | None = None,
    budget_mb: int | None = None,
    cold_dir: str | os.PathLike[str] | None = None,
) -> Variable:
    """Looks up rows of a table by ids; unlike fluid.embedding, the last extent of the ids must be 1.

    `entry`, `evict`, `budget_mb` and `cold_dir`, which Fluid does not have, say which rows pservers keep of a table
    with `is_sparse` and `is_distributed`, and where: see the page "Large tables". A step is an update of the table. An
    id that has not entered, or whose row is evicted, reads as its initial value.

    Args:
        input (Variable): the ids, which are row numbers, shape [..., 1], int64.
        size (list[int]): [number of rows, width] of the table.
        is_sparse (bool): whether the gradient is selected rows; with pservers, trainers look up the rows there.
        is_distributed (bool): whether the table is sharded by id over the pservers, so that no trainer holds it.
        padding_idx (int | None): id whose row reads as zeros and is not trained; negative: counted from the end.
        param_attr (ParamAttr | None): the table.
        dtype (str | VarType): type of the table.
        entry (str | None): when an id gets a row: 'count N', in the N'th step that lists it, or 'probability P', in
            each step that lists it with this probability, which depends on id and count alone; None: at once.
        evict (str | list[str] | None): rules, of which any evicts a row: 'unseen N', no step has listed it for more
            than N steps; 'count N after S', fewer than N steps have listed it and none for more than S;
            'shows X decay R every S', the number of steps that listed it, multiplied by R at the end of every S steps,
            is below X.
        budget_mb (int | None): the memory of the rows on each pserver, in MB; rows unseen for longest are evicted.
        cold_dir (str | os.PathLike | None): with `budget_mb`: these rows are not evicted, but kept in files in this
            folder of the pserver's host, and read back when a batch lists their ids. Results do not change.

    Returns:
        Variable: shape [..., width], of type `dtype`.

    Raises:
        TypeError: `input` is not a Variable, or not int64; a rule is not a string, `budget_mb` not an integer,
            `cold_dir` not a path.
        penstock.ProgramError: a rule or its number is wrong, or pservers do not shard the table by id.

    Example:
        ids = fluid.data('ids', [None, 1], 'int64')
        rows = fluid.layers.embedding(ids, size=[100, 8], is_sparse=True)
        assert rows.shape == (-1, 8)
    """
    policy = row_policy("embedding", is_sparse and is_distributed, entry, evict, budget_mb, cold_dir)
    return lookup_layer("lookup_table", input, size, is_sparse, is_distributed, padding_idx, param_attr, dtype, policy)


def padding_row(layer: str, padding_idx: int | None, size: Sequence[int]) -> int:
    """Returns the number of the row that reads as zeros; -1 for none."""
    if padding_idx is None:
        return -1
    rows = to_extents(size)[0]
    if not isinstance(padding_idx, numbers.Integral) or not -rows <= padding_idx < rows:
        raise program_error(
            "E-padding-idx",
            f"{layer}: padding_idx must be a row of the table, from {-rows} to {rows - 1}, not {padding_idx!r}",
        )
    return int(padding_idx) % rows


def lookup_layer(
    op_type: str,
    input: Variable,
    size: Sequence[int],
    is_sparse: bool,
    is_distributed: bool,
    padding_idx: int | None,
    param_attr: ParamAttr | None,
    dtype: str | VarType,
    policy: str | None = None,
) -> Variable:
    """Implements both layers named embedding, which differ in their op."""
    require_variables("embedding", input=input)
    if input.dtype != VarType.INT64:
        raise TypeError(f"embedding: the ids must be int64, but {input.name} is {input.dtype.name}")
    helper = LayerHelper("embedding", param_attr=param_attr)
    padding_idx = padding_row("embedding", padding_idx, size)
    table = helper.create_parameter(helper.param_attr, list(size), dtype)
    out = helper.create_variable_for_type_inference(dtype)
    helper.append_op(
        op_type,
        {"Ids": input, "W": table},
        {"Out": out},
        {
            "is_sparse": is_sparse,
            "is_distributed": is_distributed,
            "remote_prefetch": bool(is_sparse) and not is_distributed,
            "padding_idx": padding_idx,
            "row_policy": policy,
        },
    )
    return out


def autoincreased_step_counter(counter_name: str | None = None, begin: int = 1, step: int = 1) -> Variable:
    """Creates a counter that each run of the main program increases by `step` before its first op.

    Args:
        counter_name (str | None): name of the variable; calls with the same name return the same counter.
        begin (int): value in the first run.
        step (int): increment per run.

    Returns:
        Variable: shape [1], int64, persistable.

    Example:
        counter = fluid.layers.autoincreased_step_counter(begin=1)
        exe = fluid.Executor(fluid.CPUPlace())
        exe.run(fluid.default_startup_program())
        values = [int(exe.run(fetch_list=[counter])[0][0]) for _ in range(3)]
        assert values == [1, 2, 3]
    """
    helper = LayerHelper("global_step_counter")
    counter, is_new = helper.create_or_get_global_variable(
        name=counter_name or "@STEP_COUNTER@", dtype="int64", shape=[1], persistable=True
    )
    if is_new:
        helper.set_variable_initializer(counter, Constant(begin - 1, force_cpu=True))
        helper.main_program.global_block()._prepend_op(
            "increment", {"X": counter}, {"Out": counter}, {"step": float_attr(step)}
        )
        counter.stop_gradient = True
    return counter


@op_layer("dropout", typed="x", outputs="Out Mask", stop_gradient="Mask")
def dropout(
    x: Variable,
    dropout_prob: float,
    is_test: bool = False,
    seed: int | None = None,
    name: str | None = None,
    dropout_implementation: str = "downgrade_in_infer",
) -> Attrs:
    """Sets elements to 0 at random, each with probability `dropout_prob`.

    Args:
        dropout_prob: probability that an element is dropped, in [0, 1].
        seed: seed of the mask; None or 0: the program's `random_seed`, or a new one in each run.
        dropout_implementation: 'downgrade_in_infer' multiplies by 1 - dropout_prob in inference; 'upscale_in_train'
            divides the kept elements by 1 - dropout_prob in training and does nothing in inference.

    Example:
        x = fluid.data('x', [None, 4])
        y = fluid.layers.dropout(x, dropout_prob=0.5)

    Reference:
        Srivastava et al., Dropout: A Simple Way to Prevent Neural Networks from Overfitting, JMLR 2014.
    """
    seed = seed or framework.default_main_program().random_seed or seed
    return {"fix_seed": seed is not None, "seed": seed or 0}


@op_layer("softmax", typed="input", inputs={"X": "input"})
def softmax(input: Variable, use_cudnn: bool = False, name: str | None = None, axis: int = -1) -> Attrs:
    """Computes exp(x) / sum(exp(x)) along one axis.

    Args:
        axis: the axis along which the results sum to 1; negative: counted from the end.

    Example:
        x = fluid.data('x', [None, 10])
        probabilities = fluid.layers.softmax(x)
    """


@op_layer("mul", typed="x y")
def mul(x: Variable, y: Variable, x_num_col_dims: int = 1, y_num_col_dims: int = 1, name: str | None = None) -> Attrs:
    """Flattens two tensors to matrices and multiplies them.

    Args:
        x: at least 2 axes.
        y: at least 2 axes, same type as `x`; it must have as many rows as `x` has columns.

    Returns:
        Variable: shape [row extents of `x`..., column extents of `y`...], same type as `x`.

    Raises:
        penstock.ProgramError: the number of columns of `x` is not the number of rows of `y`.

    Example:
        x = fluid.data('x', [None, 4])
        y = fluid.data('y', [4, 3])
        assert fluid.layers.mul(x, y).shape == (-1, 3)
    """


@op_layer("matmul", typed="x y", attrs={"transpose_X": "transpose_x", "transpose_Y": "transpose_y"})
def matmul(
    x: Variable,
    y: Variable,
    transpose_x: bool = False,
    transpose_y: bool = False,
    alpha: float = 1.0,
    name: str | None = None,
) -> Attrs:
    """Computes alpha * x @ y over the last two axes; the leading axes are batches and are broadcast.

    Args:
        x: shape [..., M, K], or [K].
        y: shape [..., K, N], or [K]; same type as `x`.
        alpha: factor of the product.

    Returns:
        Variable: shape [..., M, N], same type as `x`.

    Raises:
        penstock.ProgramError: the inner extents or the batches are incompatible.

    Example:
        x = fluid.data('x', [2, 3, 4])
        y = fluid.data('y', [2, 5, 4])
        assert fluid.layers.matmul(x, y, transpose_y=True).shape == (2, 3, 5)
    """
    return {"alpha": float_attr(alpha)}


@op_layer("cos_sim", fluid_accepts={"X Y": "float32 float64"}, inputs={"X": "X", "Y": "Y"}, outputs="Out XNorm YNorm")
def cos_sim(X: Variable, Y: Variable) -> Attrs:
    """Computes the cosine of the angle between corresponding rows.

    Args:
        X: shape [N, D].
        Y: shape [N, D], or [1, D] to compare one row with all of `X`; same type as `X`.

    Returns:
        Variable: shape [N, 1], same type as `X`.

    Example:
        x = fluid.data('x', [None, 8])
        y = fluid.data('y', [1, 8])
        assert fluid.layers.cos_sim(x, y).shape == (-1, 1)
    """


@op_layer("merge_selected_rows")
def merge_selected_rows(x: Variable, name: str | None = None) -> Attrs:
    """Adds the rows of a SELECTED_ROWS variable that have the same row number.

    Args:
        x: SELECTED_ROWS; row numbers may repeat.

    Returns:
        Variable: SELECTED_ROWS with unique row numbers in ascending order, same type as `x`.

    Example:
        block = fluid.default_main_program().global_block()
        x = block.create_var(name='x', dtype='float32', persistable=True, type=fluid.core.VarDesc.VarType.SELECTED_ROWS)
        merged = fluid.layers.merge_selected_rows(x)
    """


@op_layer("get_tensor_from_selected_rows")
def get_tensor_from_selected_rows(x: Variable, name: str | None = None) -> Attrs:
    """Copies the values of a SELECTED_ROWS variable into a tensor.

    Args:
        x: SELECTED_ROWS with n rows of width D.

    Returns:
        Variable: shape [n, D], same type as `x`.

    Raises:
        TypeError: `x` is not a Variable, or not SELECTED_ROWS.

    Example:
        block = fluid.default_main_program().global_block()
        x = block.create_var(name='x', dtype='float32', persistable=True, type=fluid.core.VarDesc.VarType.SELECTED_ROWS)
        values = fluid.layers.get_tensor_from_selected_rows(x)
    """
    if x.type != VarType.SELECTED_ROWS:
        raise TypeError(f"get_tensor_from_selected_rows: {x.name} must be SELECTED_ROWS, not {x.type.name}")
    return None


@op_layer_with_results("top_k", "Out Indices", inputs={"X": "input", "K": "k"}, prefix="top_k", stop_gradient=True)
def topk(input: Variable, k: int | Variable, name: str | None = None) -> Attrs:
    """Finds the k largest elements of each row and their indices.

    Args:
        input: shape [..., D].
        k: number of elements, from 1 to D; a Variable is int32 of shape [1].

    Returns:
        tuple[Variable, Variable]: the elements in descending order, shape [..., k], same type as `input`, and their
            indices in the row, shape [..., k], int64.

    Raises:
        penstock.ProgramError: `k` is None.

    Example:
        x = fluid.data('x', [None, 10])
        values, indices = fluid.layers.topk(x, k=3)
        assert values.shape == (-1, 3)
    """
    if k is None:
        raise ArgumentError("top_k: k must be int | Variable, not None")
    return None
