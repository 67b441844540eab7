"""What Fluid's op tests call of a LoDTensor beside set(): room for a shape, copies."""

import math

import numpy

from penstock._penstock import LoDTensor


def _set_dims(tensor, dims):
    """Gives it a shape. Its elements stay if there are as many of them; else they are zeros."""
    held = tensor._view() if tensor._is_initialized() else numpy.zeros(0, 'float32')
    tensor.set(held.reshape(dims).copy() if held.size == math.prod(dims) else numpy.zeros(dims, held.dtype))


def _alloc(dtype):

    def allocate(tensor, place=None):
        """Makes room for elements of one type in its shape; they are zeros."""
        tensor.set(numpy.zeros(tensor.shape(), dtype))

    return allocate


def _copy(tensor, place=None):
    """A tensor of its own with the same elements and sequences."""
    copy = LoDTensor()
    if tensor._is_initialized():
        copy.set(tensor._view())
    copy.set_lod(tensor.lod())
    return copy


LoDTensor._set_dims = _set_dims
LoDTensor._get_dims = LoDTensor.shape
LoDTensor._alloc_float = _alloc('float32')
LoDTensor._alloc_double = _alloc('float64')
LoDTensor._alloc_int = _alloc('int32')
LoDTensor._copy = _copy
