"""What Fluid has for tensors beside set(): room for a shape, copies, parts, DLPack; and for scopes."""

from __future__ import annotations

import math
import weakref
from typing import TYPE_CHECKING

import numpy

from penstock._penstock import LoDTensor
from penstock._src.base.errors import state_error
from penstock._src.ir.types import dtype_name

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from typing_extensions import CapsuleType

    from penstock._penstock import Scope
    from penstock._src.ir.types import CPUPlace
    from penstock._src.ir.typing import Dtype, Place


def set_dims(tensor: LoDTensor, dims: list[int]) -> None:
    """Sets the shape. The elements are kept if their number stays the same; otherwise they become zeros."""
    held = numpy.array(tensor) if tensor._is_initialized() else numpy.zeros(0, "float32")
    tensor.set(held.reshape(dims).copy() if held.size == math.prod(dims) else numpy.zeros(dims, held.dtype))


def alloc(dtype: str) -> Callable[..., None]:

    def allocate(tensor: LoDTensor, place: CPUPlace | None = None) -> None:
        """Allocates zeros of one element type in the tensor's shape."""
        tensor.set(numpy.zeros(tensor.shape(), dtype))

    return allocate


def mutable_data(tensor: LoDTensor, place: Place, dtype: Dtype) -> int:
    """Allocates zeros of one element type in the tensor's shape. Returns the address of the first element."""
    alloc(dtype_name(dtype))(tensor)
    return tensor._view().ctypes.data


def part(tensor: LoDTensor, index: Any) -> LoDTensor:
    """Returns a new tensor with the elements that NumPy would select."""
    part = LoDTensor()
    part.set(numpy.ascontiguousarray(numpy.asarray(tensor)[index]))
    return part


def copy(tensor: LoDTensor, place: Place | None = None) -> LoDTensor:
    """Returns a new tensor with the same elements and sequences."""
    copy = LoDTensor()
    if tensor._is_initialized():
        copy.set(numpy.array(tensor))
    copy.set_lod(tensor.lod())
    return copy


def to_dlpack(tensor: LoDTensor) -> CapsuleType:
    """Returns a DLPack capsule with a copy of the elements."""
    return numpy.array(tensor).__dlpack__()


class _OfCapsule:
    """A capsule in the form in which NumPy takes one: with its device, the CPU."""

    def __init__(self, capsule: Any) -> None:
        self._capsule = capsule

    def __dlpack__(self, **_: Any) -> Any:
        return self._capsule

    @staticmethod
    def __dlpack_device__() -> tuple[int, int]:
        return 1, 0


def from_dlpack(dlpack: Any) -> LoDTensor:
    """Makes a tensor of a DLPack capsule, or of an object that offers one, such as a tensor of PyTorch.

    Args:
        dlpack (capsule | object with __dlpack__): elements in the memory of the CPU. A capsule is used up.

    Returns:
        LoDTensor: a copy of the elements, without sequences.

    Raises:
        TypeError: `dlpack` is neither.
        BufferError: its elements are on another device, or of a type that NumPy lacks.

    Example:
        tensor = fluid.core.from_dlpack(np.ones((2, 3), 'float32'))
        assert tensor.shape() == [2, 3]
        assert fluid.core.from_dlpack(tensor._to_dlpack()).shape() == [2, 3]
    """
    if not hasattr(dlpack, "__dlpack__"):
        if type(dlpack).__name__ != "PyCapsule":
            raise TypeError(f"from_dlpack takes a DLPack capsule or an object that offers one, not {dlpack!r}")
        dlpack = _OfCapsule(dlpack)
    tensor = LoDTensor()
    tensor.set(numpy.ascontiguousarray(numpy.from_dlpack(dlpack)))
    return tensor


_removed_scopes: weakref.WeakSet[Scope] = weakref.WeakSet()


def remove_from_pool(scope: Scope) -> None:
    """Removes all variables of a scope, as Fluid deletes a scope; a second call is an error."""
    if scope in _removed_scopes:
        raise state_error("E-scope-gone", "Deleting a nonexistent scope is not allowed: this one has been removed")
    for name in scope.local_var_names():
        scope.erase(name)
    _removed_scopes.add(scope)


def set_feed_variable(scope: Scope, tensor: LoDTensor, name: str, place: int) -> None:
    """Copies a tensor into a scope's array of feeds, at an existing position or at the end."""
    array = scope.var(name).get_lod_tensor_array()
    if place == len(array):
        array.append(tensor)
    else:
        array[place] = tensor


def get_fetch_variable(scope: Scope, name: str, place: int) -> LoDTensor:
    """Returns the tensor at a position of a scope's array of fetches."""
    return scope.var(name).get_lod_tensor_array()[place]
