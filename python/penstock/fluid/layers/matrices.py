"""Matrices: construction from diagonals, triangles, products."""

import numpy

from penstock.fluid._argument_types import element_types
from penstock.fluid.core import to_dtype
from penstock.fluid.framework import Variable
from penstock.fluid.layer_helper import LayerHelper
from penstock.fluid.layers.shaping import stack
from penstock.fluid.layers.tensor import assign

__all__ = ['addmm', 'bmm', 'cross', 'diag', 'diag_embed', 'dist', 'dot', 'eye', 'kron', 'trace', 'tril', 'triu']


def _layer(op_type, inputs, attrs=None, type_of='X', name=None, out=None, named=False):
    """Appends an op. With `named`, the result has exactly the requested name."""
    helper = LayerHelper(op_type, name=name)
    helper.require_slots(inputs)
    dtype = inputs[type_of].dtype
    if out is None and named and name is not None:
        out = helper.create_variable(name=name, dtype=dtype, persistable=False)
    elif out is None:
        out = helper.create_variable_for_type_inference(dtype)
    helper.append_op(op_type, inputs, {'Out': out}, attrs)
    return out


def eye(num_rows, num_columns=None, batch_shape=None, dtype='float32'):
    """Makes the identity matrix.

    Args:
        num_rows (int): the number of rows.
        num_columns (int): the number of columns; by default as many as rows.
        batch_shape (list): extents in front, along which the matrix is repeated.
        dtype (str): float32, float64, int32 or int64.

    Returns:
        Variable: shape batch_shape + [num_rows, num_columns]; it has no gradient.

    Raises:
        TypeError: a number is not an int, or is negative.

    Example:
        matrices = fluid.layers.eye(3, num_columns=4, batch_shape=[2])  # shape [2, 3, 4]
    """
    num_columns = num_rows if num_columns is None else num_columns
    for what, number in (('num_rows', num_rows), ('num_columns', num_columns)):
        if not isinstance(number, int) or number < 0:
            raise TypeError('eye: %s must be an int of at least 0, not %r' % (what, number))
    if batch_shape is not None and not (isinstance(batch_shape, list) and all(extent > 0 for extent in batch_shape)):
        raise TypeError('eye: batch_shape must be a list of numbers above 0, not %r' % (batch_shape,))
    helper = LayerHelper('eye')
    out = helper.create_variable_for_type_inference(dtype)
    attrs = {'num_rows': num_rows, 'num_columns': num_columns, 'dtype': int(to_dtype(dtype))}
    helper.append_op('eye', None, {'Out': out}, attrs)
    out.stop_gradient = True
    for extent in reversed(batch_shape or []):
        out = stack([out] * extent, axis=0)
    return out


@element_types(diagonal='int32 int64 float32 float64')
def diag(diagonal):
    """Makes a square matrix from its diagonal.

    Args:
        diagonal (Variable or numpy.ndarray): shape [n]; float32, float64, int32 or int64.

    Returns:
        Variable: shape [n, n], same type as `diagonal`; it has no gradient.

    Raises:
        TypeError: `diagonal` is not a Variable, or has an unsupported element type.
        penstock.ProgramError: `diagonal` is not of rank 1.

    Example:
        y = fluid.layers.diag(np.array([3, 4, 5], 'int32'))
    """
    helper = LayerHelper('diag')
    if isinstance(diagonal, numpy.ndarray):
        diagonal = assign(diagonal)
    helper.takes(diagonal=diagonal)
    out = helper.create_variable_for_type_inference(diagonal.dtype)
    helper.append_op('diag', {'Diagonal': diagonal}, {'Out': out})
    out.stop_gradient = True
    return out


@element_types(input='int32 int64 float16 float32 float64')
def diag_embed(input, offset=0, dim1=-2, dim2=-1):
    """Makes matrices from one of their diagonals.

    Args:
        input (Variable or numpy.ndarray): rank 1 or more; its last extent lies on the diagonals.
        offset (int): offset of the diagonal above the main one.
        dim1 (int): the result's extent of the rows.
        dim2 (int): the result's extent of the columns.

    Returns:
        Variable: one extent more than `input`, same type as `input`; it has no gradient.

    Raises:
        TypeError: `input` is not a Variable, or has an unsupported element type.
        penstock.ProgramError: dim1 and dim2 do not name two extents of the result.

    Example:
        y = fluid.layers.diag_embed(fluid.data('x', [None, 3]), offset=1)   # shape [-1, 4, 4]
    """
    if isinstance(input, numpy.ndarray):
        input = assign(input)
    out = _layer('diag_embed', {'Input': input}, {'offset': offset, 'dim1': dim1, 'dim2': dim2}, type_of='Input')
    out.stop_gradient = True
    return out


def _triangle(layer, input, diagonal, name, lower):
    helper = LayerHelper(layer, name=name).takes(input=input)
    if len(input.shape) < 2:
        raise ValueError('input shape in %s must be at least 2-D, not %s' % (layer, input.shape))
    if not isinstance(diagonal, int):
        raise TypeError('diagonal in %s must be a python Int, not %r' % (layer, diagonal))
    if name is None:
        out = helper.create_variable_for_type_inference(input.dtype)
    else:
        out = helper.create_variable(name=name, dtype=input.dtype, persistable=False)
    helper.append_op('tril_triu', {'X': input}, {'Out': out}, {'diagonal': diagonal, 'lower': lower})
    return out


def tril(input, diagonal=0, name=None):
    """Keeps the lower triangle of each matrix and sets the other elements to 0.

    Args:
        input (Variable): rank 2 or more; the last two extents are matrices.
        diagonal (int): offset of the last kept diagonal above the main one.
        name (str): the result's name; by default a generated one.

    Returns:
        Variable: same shape and type as `input`.

    Raises:
        ValueError: the rank is below 2.
        TypeError: `input` is not a Variable, or `diagonal` is not an int.

    Example:
        y = fluid.layers.tril(fluid.data('x', [3, 4]), diagonal=-1)
    """
    return _triangle('tril', input, diagonal, name, True)


def triu(input, diagonal=0, name=None):
    """Keeps the upper triangle of each matrix and sets the other elements to 0.

    Args:
        input (Variable): rank 2 or more; the last two extents are matrices.
        diagonal (int): offset of the first kept diagonal above the main one.
        name (str): the result's name; by default a generated one.

    Returns:
        Variable: same shape and type as `input`.

    Raises:
        ValueError: the rank is below 2.
        TypeError: `input` is not a Variable, or `diagonal` is not an int.

    Example:
        y = fluid.layers.triu(fluid.data('x', [3, 4]), diagonal=1)
    """
    return _triangle('triu', input, diagonal, name, False)


@element_types(input='int32 int64 float16 float32 float64', out='int32 int64 float16 float32 float64')
def trace(input, offset=0, dim1=0, dim2=1, out=None, name=None):
    """Computes the sum of a diagonal of each matrix.

    Args:
        input (Variable): rank 2 or more; float32, float64, int32 or int64.
        offset (int): offset of the diagonal above the main one.
        dim1 (int): the extent of the rows; a negative one counts from the end.
        dim2 (int): the extent of the columns.
        out (Variable): receives the result; by default a new Variable.
        name (str): prefix of the result's name; by default the layer's.

    Returns:
        Variable: the extents of `input` without dim1 and dim2, [1] if none is left; same type as `input`.

    Raises:
        TypeError: `input` is not a Variable, or has an unsupported element type.
        penstock.ProgramError: dim1 and dim2 do not name two extents.

    Example:
        y = fluid.layers.trace(fluid.data('x', [3, 4, 5]), offset=1, dim1=1, dim2=2)   # shape [3]
    """
    attrs = {'offset': offset, 'dim1': dim1, 'dim2': dim2}
    return _layer('trace', {'Input': input}, attrs, type_of='Input', name=name, out=out)


@element_types(x='int32 int64 float16 float32 float64', y='int32 int64 float16 float32 float64',
               out='int32 int64 float16 float32 float64')
def kron(x, y, out=None, name=None):
    """Computes the Kronecker product: a copy of y, multiplied by the element, for each element of x.

    Args:
        x (Variable): float32, float64, int32 or int64.
        y (Variable): same type as `x`; the one of lower rank gets extents of 1 in front.
        out (Variable): receives the result; by default a new Variable.
        name (str): prefix of the result's name; by default the layer's.

    Returns:
        Variable: each extent is the product of those of `x` and `y`; same type as `x`.

    Raises:
        TypeError: `x` or `y` is not a Variable, or has an unsupported element type.
        penstock.ProgramError: the types differ.

    Example:
        z = fluid.layers.kron(fluid.data('x', [2, 3]), fluid.data('y', [4, 5]))     # shape [8, 15]
    """
    return _layer('kron', {'X': x, 'Y': y}, name=name, out=out)


def cross(input, other, dim=None):
    """Computes the vector product along an extent of 3 elements.

    Args:
        input (Variable): float32, float64, int32 or int64.
        other (Variable): same shape and type as `input`.
        dim (int): the extent; by default the first that has 3 elements.

    Returns:
        Variable: same shape and type as `input`.

    Raises:
        TypeError: `input` or `other` is not a Variable.
        penstock.ProgramError: the shapes differ, or the extent has not 3 elements.

    Example:
        z = fluid.layers.cross(fluid.data('x', [None, 3]), fluid.data('y', [None, 3]), dim=1)
    """
    return _layer('cross', {'X': input, 'Y': other}, {'dim': dim} if dim else {})


@element_types(x='float32 float64', y='float32 float64')
def dist(x, y, p=2):
    """Computes the p-norm of x - y.

    Args:
        x (Variable): any shape, float32 or float64.
        y (Variable): same type as `x`; shapes are aligned at their last extents, and extents of 1 are repeated.
        p (float): which norm; 0 counts the elements that differ, and infinities give the largest and the smallest
            difference.

    Returns:
        Variable: shape [1], same type as `x`.

    Raises:
        TypeError: `x` or `y` is not a Variable, or has an unsupported element type.
        penstock.ProgramError: the shapes are incompatible.

    Example:
        z = fluid.layers.dist(fluid.data('x', [2, 2]), fluid.data('y', [2, 2]), p=1)
    """
    if not isinstance(p, (int, float)):
        raise TypeError('dist: p must be a number, not %r' % (p,))
    return _layer('dist', {'X': x, 'Y': y}, {'p': float(p)})


@element_types(x='int32 int64 float32 float64', y='int32 int64 float32 float64')
def dot(x, y, name=None):
    """Computes the inner product of each row.

    Args:
        x (Variable): shape [n] or [rows, n]; float32, float64, int32 or int64.
        y (Variable): same shape and type as `x`.
        name (str): the result's name; by default a generated one.

    Returns:
        Variable: shape [1] or [rows, 1], same type as `x`.

    Raises:
        TypeError: `x` or `y` is not a Variable, or has an unsupported element type.
        penstock.ProgramError: the shapes differ, or the rank is above 2.

    Example:
        z = fluid.layers.dot(fluid.data('x', [None, 4]), fluid.data('y', [None, 4]))
    """
    return _layer('dot', {'X': x, 'Y': y}, name=name, named=True)


def bmm(x, y, name=None):
    """Multiplies each pair of matrices.

    Args:
        x (Variable): shape [batch, m, k], float32 or float64.
        y (Variable): shape [batch, k, n], same type as `x`.
        name (str): prefix of the result's name; by default the layer's.

    Returns:
        Variable: shape [batch, m, n], same type as `x`.

    Raises:
        TypeError: `x` or `y` is not a Variable.
        penstock.ProgramError: the shapes are incompatible.

    Example:
        z = fluid.layers.bmm(fluid.data('x', [None, 2, 3]), fluid.data('y', [None, 3, 4]))
    """
    return _layer('bmm', {'X': x, 'Y': y}, name=name)


@element_types(x='float32 float64', y='float32 float64')
def addmm(input, x, y, alpha=1.0, beta=1.0, name=None):
    """Adds a matrix product to a matrix: alpha * x . y + beta * input.

    Args:
        input (Variable): shape [m, n], where each extent may be 1 and is repeated then; float32 or float64.
        x (Variable): shape [m, k], same type as `input`.
        y (Variable): shape [k, n], same type as `input`.
        alpha (float): the factor of the product.
        beta (float): the factor of `input`.
        name (str): prefix of the result's name; by default the layer's.

    Returns:
        Variable: shape [m, n], same type as `input`.

    Raises:
        TypeError: `input`, `x` or `y` is not a Variable, or has an unsupported element type.
        penstock.ProgramError: the shapes are incompatible.

    Example:
        z = fluid.layers.addmm(fluid.data('b', [1, 4]), fluid.data('x', [None, 3]), fluid.data('y', [3, 4]))
    """
    return _layer('addmm', {'Input': input, 'X': x, 'Y': y}, {'Alpha': alpha, 'Beta': beta}, name=name)
