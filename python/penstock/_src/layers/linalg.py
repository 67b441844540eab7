"""Matrices: construction from diagonals, triangles, products."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy

from penstock._src.ir.types import float_attr, to_dtype
from penstock._src.ir.variable import Variable
from penstock._src.layers.decorators import Attrs, layer, op_layer
from penstock._src.layers.helper import LayerHelper
from penstock._src.layers.slicing import stack
from penstock._src.layers.tensor import assign
from penstock._src.layers.variants import op_layers

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from penstock._src.ir.typing import Array


def eye(
    num_rows: int, num_columns: int | None = None, batch_shape: Sequence[Any] | None = None, dtype: str = "float32"
) -> Variable:
    """Creates an identity matrix, or a batch of them.

    Args:
        num_rows (int): the number of rows.
        num_columns (int): the number of columns; by default `num_rows`.
        batch_shape (list): leading extents, over which the matrix is repeated.
        dtype (str): float32, float64, int32 or int64.

    Returns:
        Variable: shape batch_shape + [num_rows, num_columns], of type `dtype`; it has no gradient.

    Raises:
        TypeError: a number of rows or columns is not an int of at least 0, or `batch_shape` is not a list of positive
            numbers.

    Example:
        matrices = fluid.layers.eye(3, num_columns=4, batch_shape=[2])  # shape [2, 3, 4]
    """
    num_columns = num_rows if num_columns is None else num_columns
    for what, number in (("num_rows", num_rows), ("num_columns", num_columns)):
        if not isinstance(number, int) or number < 0:
            raise TypeError(f"eye: {what} must be an int of at least 0, not {number!r}")
    if batch_shape is not None and not (isinstance(batch_shape, list) and all(extent > 0 for extent in batch_shape)):
        raise TypeError(f"eye: batch_shape must be a list of numbers above 0, not {batch_shape!r}")
    helper = LayerHelper("eye")
    out = helper.create_variable_for_type_inference(dtype)
    attrs = {"num_rows": num_rows, "num_columns": num_columns, "dtype": int(to_dtype(dtype))}
    helper.append_op("eye", None, {"Out": out}, attrs)
    out.stop_gradient = True
    for extent in reversed(batch_shape or []):
        out = stack([out] * extent, axis=0)
    return out


@layer("diag", fluid_accepts={"diagonal": "int32 int64 float32 float64"})
def diag(diagonal: Variable | Array) -> Variable:
    """Creates a square matrix with the given diagonal.

    Args:
        diagonal (Variable or numpy.ndarray): shape [n].

    Returns:
        Variable: shape [n, n], same type as `diagonal`; it has no gradient.

    Raises:
        TypeError: `diagonal` is not a Variable, or has an unsupported element type.
        penstock.ProgramError: the rank of `diagonal` is not 1.

    Example:
        y = fluid.layers.diag(np.array([3, 4, 5], 'int32'))
    """
    helper = LayerHelper("diag")
    if isinstance(diagonal, numpy.ndarray):
        diagonal = assign(diagonal)
    helper.takes(diagonal=diagonal)
    out = helper.create_variable_for_type_inference(diagonal.dtype)
    helper.append_op("diag", {"Diagonal": diagonal}, {"Out": out})
    out.stop_gradient = True
    return out


@layer("diag_embed", fluid_accepts={"input": "int32 int64 float16 float32 float64"})
def diag_embed(input: Variable | Array, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Variable:
    """Creates matrices with the given diagonals.

    Args:
        input (Variable or numpy.ndarray): shape [..., n]; the last axis runs along the diagonals.
        offset (int): offset of the diagonal from the main diagonal; positive: above it.
        dim1 (int): the axis of the result that holds the rows of the matrices.
        dim2 (int): the axis of the result that holds the columns of the matrices.

    Returns:
        Variable: one axis more than `input`, same type as `input`; it has no gradient.

    Raises:
        TypeError: `input` is not a Variable, or has an unsupported element type.
        penstock.ProgramError: `dim1` and `dim2` are not two different axes of the result.

    Example:
        y = fluid.layers.diag_embed(fluid.data('x', [None, 3]), offset=1)   # shape [-1, 4, 4]
    """
    helper = LayerHelper("diag_embed")
    if isinstance(input, numpy.ndarray):
        input = assign(input)
    helper.takes(input=input)
    out = helper.create_variable_for_type_inference(input.dtype)
    helper.append_op("diag_embed", {"Input": input}, {"Out": out}, {"offset": offset, "dim1": dim1, "dim2": dim2})
    out.stop_gradient = True
    return out


@op_layers("tril_triu", inputs={"X": "input"}, named=True)
def _triangle(input: Variable, diagonal: int = 0, name: str | None = None, *, _layer: str = "") -> Attrs:
    """Keeps the {kept} triangle of each matrix and sets the other elements to 0.

    Args:
        input: shape [..., rows, columns].
        diagonal: offset of the {bound} kept diagonal from the main diagonal; positive: above it.
        name: the result's name; by default a generated one.

    Raises:
        ValueError: `input` has fewer than 2 axes.
        TypeError: `input` is not a Variable, or `diagonal` is not an int.

    Example:
        y = fluid.layers.{layer}(fluid.data('x', [3, 4]), diagonal={offset})
    """
    if len(input.shape) < 2:
        raise ValueError(f"input shape in {_layer} must be at least 2-D, not {input.shape}")
    if not isinstance(diagonal, int):
        raise TypeError(f"diagonal in {_layer} must be a python Int, not {diagonal!r}")
    return {"lower": _layer == "tril"}


tril = _triangle("tril", _layer="tril", kept="lower", bound="highest", offset=-1)
triu = _triangle("triu", _layer="triu", kept="upper", bound="lowest", offset=1)


@op_layer("trace", typed="input out")
def trace(
    input: Variable, offset: int = 0, dim1: int = 0, dim2: int = 1, out: Variable | None = None, name: str | None = None
) -> Attrs:
    """Computes the sum of a diagonal of each matrix.

    Args:
        input: at least 2 axes.
        offset: offset of the diagonal from the main diagonal; positive: above it.
        dim1: the axis of the rows; negative: counted from the end.
        dim2: the axis of the columns; negative: counted from the end.

    Returns:
        Variable: the shape of `input` without `dim1` and `dim2` ([1] if none remains), same type as `input`.

    Raises:
        penstock.ProgramError: `dim1` and `dim2` are not two different axes.

    Example:
        y = fluid.layers.trace(fluid.data('x', [3, 4, 5]), offset=1, dim1=1, dim2=2)   # shape [3]
    """


@op_layer("kron", typed="x y out")
def kron(x: Variable, y: Variable, out: Variable | None = None, name: str | None = None) -> Attrs:
    """Computes the Kronecker product: each element of x is replaced by its product with y.

    Args:
        y: any shape, same type as `x`; the operand of lower rank gets leading extents of 1.

    Returns:
        Variable: each extent is the product of the extents of `x` and `y`; same type as `x`.

    Example:
        z = fluid.layers.kron(fluid.data('x', [2, 3]), fluid.data('y', [4, 5]))     # shape [8, 15]
    """


@op_layer("cross", inputs={"X": "input", "Y": "other"})
def cross(input: Variable, other: Variable, dim: int | None = None) -> Attrs:
    """Computes the cross product of vectors along an axis of extent 3.

    Args:
        input: any shape with an extent of 3.
        other: same shape and type as `input`.
        dim: the axis; by default, and for 0, the first axis of extent 3.

    Raises:
        penstock.ProgramError: the shapes differ, or the extent of the axis is not 3.

    Example:
        z = fluid.layers.cross(fluid.data('x', [None, 3]), fluid.data('y', [None, 3]), dim=1)
    """
    return {"dim": dim or None}


@op_layer("dist", fluid_accepts={"x y": "float32 float64"})
def dist(x: Variable, y: Variable, p: float = 2) -> Attrs:
    """Computes the p-norm of x - y.

    Args:
        y: same type as `x`; the shapes are broadcast against each other.
        p: order of the norm; 0 counts the elements that differ, infinity takes the largest absolute difference and
            minus infinity the smallest.

    Returns:
        Variable: shape [1], same type as `x`.

    Raises:
        TypeError: `x` or `y` is not a Variable, or has an unsupported element type, or `p` is not a number.

    Example:
        z = fluid.layers.dist(fluid.data('x', [2, 2]), fluid.data('y', [2, 2]), p=1)
    """
    if not isinstance(p, (int, float)):
        raise TypeError(f"dist: p must be a number, not {p!r}")
    return {"p": float_attr(p)}


@op_layer("dot", fluid_accepts={"x y": "int32 int64 float32 float64"}, named=True)
def dot(x: Variable, y: Variable, name: str | None = None) -> Attrs:
    """Computes the dot product of each pair of rows.

    Args:
        x: shape [n] or [rows, n].
        y: same shape and type as `x`.
        name: the result's name; by default a generated one.

    Returns:
        Variable: shape [1] or [rows, 1], same type as `x`.

    Raises:
        penstock.ProgramError: the shapes differ, or the rank is above 2.

    Example:
        z = fluid.layers.dot(fluid.data('x', [None, 4]), fluid.data('y', [None, 4]))
    """


@op_layer("bmm")
def bmm(x: Variable, y: Variable, name: str | None = None) -> Attrs:
    """Multiplies each pair of matrices of two batches.

    Args:
        x: shape [batch, m, k].
        y: shape [batch, k, n], same type as `x`.

    Returns:
        Variable: shape [batch, m, n], same type as `x`.

    Example:
        z = fluid.layers.bmm(fluid.data('x', [None, 2, 3]), fluid.data('y', [None, 3, 4]))
    """


@op_layer("addmm", fluid_accepts={"x y": "float32 float64"}, attrs={"Alpha": "alpha", "Beta": "beta"})
def addmm(
    input: Variable, x: Variable, y: Variable, alpha: float = 1.0, beta: float = 1.0, name: str | None = None
) -> Attrs:
    """Adds a matrix product to a matrix: alpha * x @ y + beta * input.

    Args:
        input: shape [m, n], or a shape that can be broadcast to it.
        x: shape [m, k], same type as `input`.
        y: shape [k, n], same type as `input`.

    Returns:
        Variable: shape [m, n], same type as `input`.

    Example:
        z = fluid.layers.addmm(fluid.data('b', [1, 4]), fluid.data('x', [None, 3]), fluid.data('y', [3, 4]))
    """
