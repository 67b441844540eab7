"""What a run returns: the variables that a fetch_list names, and their values as arrays."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy

from penstock._penstock import LoDTensor
from penstock._src.base.errors import error_with_id, program_error
from penstock._src.executor.scopes import _scope
from penstock._src.ir.array_conversion import to_array
from penstock._src.ir.operator import Operator
from penstock._src.ir.variable import Variable

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from numpy.typing import ArrayLike

    from penstock._penstock import Scope, _Fetched
    from penstock._src.ir.typing import Array, Place


array_kind = numpy.ndarray  # class of fetched arrays; another class may be set


empties_are_vectors = False  # whether fetched tensors without elements have shape [0], as in Fluid


def _as_arrays(value: _Fetched | list[LoDTensor]) -> Array | list[Array]:
    """Returns a fetched value as an array, or as a list of arrays for a LoDTensorArray."""
    if isinstance(value, LoDTensor):
        return as_numpy(value).view(array_kind)
    return [as_numpy(value[i]).view(array_kind) for i in range(len(value))]


def _emptied(value: _Fetched | list[LoDTensor]) -> _Fetched | list[LoDTensor]:
    """Returns the value; a tensor without elements becomes a vector."""
    if not isinstance(value, LoDTensor) or 0 not in value.shape() or len(value.shape()) == 1:
        return value
    vector = LoDTensor()
    vector.set(numpy.zeros(0, value._view().dtype))
    if value.shape()[0] == 0:  # the sequences cover no rows
        vector.set_lod(value.lod())
    return vector


def returned(value: _Fetched | list[LoDTensor], return_numpy: bool) -> Array | list[Array] | _Fetched | list[LoDTensor]:
    """Returns a fetched value as Executor.run returns it."""
    if empties_are_vectors:
        value = _emptied(value)
    return _as_arrays(value) if return_numpy else value


def as_numpy(tensor: LoDTensor) -> Array:
    """Returns the elements of a LoDTensor as an array that shares its memory.

    Args:
        tensor (LoDTensor): a tensor without sequences.

    Returns:
        numpy.ndarray: the elements.

    Raises:
        RuntimeError: the tensor has sequences.

    Example:
        exe = fluid.Executor(fluid.CPUPlace())
        one = fluid.layers.ones([2], 'float32')
        tensor, = exe.run(fetch_list=[one], return_numpy=False)
        assert fluid.executor.as_numpy(tensor).tolist() == [1.0, 1.0]
    """
    if tensor.lod():
        raise error_with_id(
            RuntimeError,
            "E-fetch-lod",
            "a fetched tensor has sequences, which an array cannot hold; fetch with return_numpy=False",
        )
    return tensor._view()


def _fetch_var(name: str, scope: Scope | None = None, return_numpy: bool = True) -> Array | LoDTensor:
    """Returns the value of the variable `name` in a scope, as an array or as a LoDTensor."""
    var = (_scope if scope is None else scope).find_var(name)
    if var is None:
        raise program_error("E-scope-variable", f"the scope has no variable {name}")
    return as_numpy(var.get_tensor()) if return_numpy else var.get_tensor()


def _as_lodtensor(data: ArrayLike, place: Place, dtype: str | None = None) -> LoDTensor:
    """Returns a LoDTensor with the elements of an array, or with one number of the element type `dtype`."""
    if isinstance(data, list):
        raise error_with_id(
            RuntimeError, "E-fetch-lod", "a list of arrays may have sequences; convert it to a LoDTensor"
        )
    if numpy.isscalar(data):
        if dtype is None:
            raise error_with_id(AssertionError, "E-argument-type", "a number needs an element type")
        data = to_array([data], dtype, "data", "_as_lodtensor")
    tensor = LoDTensor()
    tensor.set(data, place)
    return tensor


def split_fetches(fetch_list: Sequence[object] | Variable | str | None) -> tuple[list[str], list[Operator]]:
    """Returns (names of fetched variables, ops). The list may contain the result of minimize, or the first part of it:
    its ops are run, and nothing is fetched for it."""
    if fetch_list is None:
        return [], []
    names: list[str] = []
    ops: list[Operator] = []
    for one in [fetch_list] if isinstance(fetch_list, (Variable, str)) else fetch_list:
        # In a tuple (ops, pairs of parameters and gradients) the pairs are ignored, as in Fluid.
        parts: Any = one if isinstance(one, list) else one[0] if isinstance(one, tuple) and one else [one]
        for part in parts if isinstance(parts, (list, tuple)) else [parts]:
            if isinstance(part, Operator):
                ops.append(part)
                continue
            name = getattr(part, "name", part)
            if not isinstance(name, str):
                raise TypeError(f"fetch_list holds Variables, their names, or results of minimize, not {part!r}")
            names.append(name)
    return names, ops
