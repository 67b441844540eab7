"""Layers with parameters, and the functions commonly used between them."""

from __future__ import annotations

import math
import numbers
import operator

from penstock._src.base.errors import program_error
from penstock._src.ir.argument_types import ArgumentError
from penstock._src.ir.types import VarType, float_attr, to_extents
from penstock._src.ir.variable import Variable
from penstock._src.layers.decorators import Attrs, layer, op_layer
from penstock._src.layers.helper import LayerHelper, require_variables
from penstock._src.layers.tensor import int_list
from penstock._src.parameters.initializer import Constant

__all__ = [
    "autoincreased_step_counter",
    "cos_sim",
    "dropout",
    "embedding",
    "fc",
    "flatten",
    "get_tensor_from_selected_rows",
    "matmul",
    "merge_selected_rows",
    "mul",
    "reshape",
    "softmax",
    "split",
    "squeeze",
    "topk",
    "transpose",
    "unsqueeze",
]

_MOST_PARTS = 2**16  # of split; each is a Variable


@layer("fc", typed="input")
def fc(input, size, num_flatten_dims=1, param_attr=None, bias_attr=None, act=None, name=None):
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


def embedding(input, size, is_sparse=False, is_distributed=False, padding_idx=None, param_attr=None, dtype="float32"):
    """Looks up rows of a table by ids; unlike fluid.embedding, the last extent of the ids must be 1.

    Args:
        input (Variable): the ids, which are row numbers, shape [..., 1], int64.
        size (list[int]): [number of rows, width] of the table.
        is_sparse (bool): whether the gradient is selected rows; with pservers, trainers look up the rows there.
        is_distributed (bool): whether the table is sharded by id over the pservers, so that no trainer holds it.
        padding_idx (int | None): id whose row reads as zeros and is not trained; negative: counted from the end.
        param_attr (ParamAttr | None): the table.
        dtype (str | VarType): type of the table.

    Returns:
        Variable: shape [..., width], of type `dtype`.

    Raises:
        TypeError: `input` is not a Variable, or not int64.

    Example:
        ids = fluid.data('ids', [None, 1], 'int64')
        rows = fluid.layers.embedding(ids, size=[100, 8], is_sparse=True)
        assert rows.shape == (-1, 8)
    """
    return lookup_layer("lookup_table", input, size, is_sparse, is_distributed, padding_idx, param_attr, dtype)


def padding_row(layer, padding_idx, size):
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


def lookup_layer(op_type, input, size, is_sparse, is_distributed, padding_idx, param_attr, dtype):
    """Implements both layers named embedding, which differ in their op."""
    require_variables("embedding", input=input)
    if input.dtype != VarType.INT64:
        raise TypeError(f"embedding: the ids must be int64, but {input.name} is {input.dtype.name}")
    helper = LayerHelper("embedding", param_attr=param_attr)
    padding_idx = padding_row("embedding", padding_idx, size)
    table = helper.create_parameter(helper.param_attr, size, dtype)
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
        },
    )
    return out


def autoincreased_step_counter(counter_name=None, begin=1, step=1):
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


@layer("dropout", typed="x")
def dropout(x, dropout_prob, is_test=False, seed=None, name=None, dropout_implementation="downgrade_in_infer"):
    """Sets elements to 0 at random, each with probability `dropout_prob`.

    Args:
        dropout_prob (float): probability that an element is dropped, in [0, 1].
        seed (int | None): seed of the mask; None or 0: the program's `random_seed`, or a new one in each run.
        dropout_implementation (str): 'downgrade_in_infer' multiplies by 1 - dropout_prob in inference;
            'upscale_in_train' divides the kept elements by 1 - dropout_prob in training and does nothing in inference.

    Returns:
        Variable: same shape and type as `x`.

    Example:
        x = fluid.data('x', [None, 4])
        y = fluid.layers.dropout(x, dropout_prob=0.5)

    Reference:
        Srivastava et al., Dropout: A Simple Way to Prevent Neural Networks from Overfitting, JMLR 2014.
    """
    helper = LayerHelper("dropout", name=name).takes(x=x)
    out = helper.create_variable_for_type_inference(x.dtype)
    mask = helper.create_variable_for_type_inference(VarType.UINT8, stop_gradient=True)
    if not seed and helper.main_program.random_seed != 0:
        seed = helper.main_program.random_seed
    helper.append_op(
        "dropout",
        {"X": x},
        {"Out": out, "Mask": mask},
        {
            "dropout_prob": dropout_prob,
            "is_test": is_test,
            "fix_seed": seed is not None,
            "seed": seed if seed is not None else 0,
            "dropout_implementation": dropout_implementation,
        },
    )
    return out


@op_layer("softmax", typed="input", inputs={"X": "input"})
def softmax(input: Variable, use_cudnn: bool = False, name: str | None = None, axis: int = -1) -> Attrs:
    """Computes exp(x) / sum(exp(x)) along one axis.

    Args:
        axis: the axis along which the results sum to 1; negative: counted from the end.

    Example:
        x = fluid.data('x', [None, 10])
        probabilities = fluid.layers.softmax(x)
    """


@op_layer("mul", typed="x", fluid_accepts={"y": "float16 float32 float64"})
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


@op_layer(
    "matmul",
    typed="x",
    fluid_accepts={"y": "float16 float32 float64"},
    attrs={"transpose_X": "transpose_x", "transpose_Y": "transpose_y"},
)
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
    if not isinstance(perm, (list, tuple)):
        raise TypeError(f"transpose: perm must be a list of ints, not {perm!r}")
    if sorted(perm) != list(range(len(x.shape))):
        raise ValueError(f"perm must be a permutation of the {len(x.shape)} axes of x, not {list(perm)}")
    return {"axis": list(perm)}


@layer("reshape", fluid_accepts={"x": "int32 int64 float16 float32 float64"})
def reshape(x, shape, actual_shape=None, act=None, inplace=False, name=None):
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
    inputs = {"X": x}
    if isinstance(shape, Variable):
        actual_shape, shape = shape, []
    given_shape = shape
    shape, variables = int_list(helper, shape)
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
def unsqueeze(input, axes, name=None):
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


def _with_axes(op_type, helper, input, axes, **tensors):
    out = helper.create_variable_for_type_inference(input.dtype)
    xshape = helper.create_variable_for_type_inference(input.dtype)
    helper.append_op(op_type, dict(tensors, X=input), {"Out": out, "XShape": xshape}, {"axes": list(axes)})
    return out


@layer()
def split(input, num_or_sections, dim=-1, name=None):
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
    inputs, attrs = {"X": input}, {}
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
        count = len(num_or_sections)
        attrs["sections"], variables = int_list(helper, num_or_sections)
        if variables:
            inputs["SectionsTensorList"] = variables
    outs = [helper.create_variable_for_type_inference(input.dtype) for _ in range(count)]
    helper.append_op("split", inputs, {"Out": outs}, attrs)
    return outs


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


@layer()
def topk(input, k, name=None):
    """Finds the k largest elements of each row and their indices.

    Args:
        input (Variable): shape [..., D], float32 or float64.
        k (int | Variable): number of elements, from 1 to D; a Variable is int32 of shape [1].

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
    helper = LayerHelper("top_k", name=name).takes(input=input)
    values = helper.create_variable_for_type_inference(input.dtype)
    indices = helper.create_variable_for_type_inference("int64")
    inputs, attrs = {"X": input}, {}
    if k is None:
        raise ArgumentError("top_k: k must be int | Variable, not None")
    if isinstance(k, Variable):
        inputs["K"] = k
    else:
        attrs["k"] = k
    helper.append_op("top_k", inputs, {"Out": values, "Indices": indices}, attrs)
    values.stop_gradient = True
    indices.stop_gradient = True
    return values, indices
