"""Checks of the element types of a layer's arguments, for layers that check them in Fluid."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

from penstock import _penstock
from penstock._src.ir.types import VAR_TYPES, VarDesc, VarType, dtype_name, to_dtype
from penstock._src.ir.variable import Variable

if TYPE_CHECKING:
    from typing import Any

_TYPED = (VarDesc.VarType.LOD_TENSOR, VarDesc.VarType.SELECTED_ROWS)


class ArgumentError(ValueError, TypeError, AssertionError):
    """A wrong argument. Fluid raises different exceptions for different arguments, and scripts catch any of them."""


def require_types(layer: str, name: str, given: Any, types: frozenset[VarType]) -> None:
    """Raises TypeError if a Variable, or one in a list of Variables, has an element type that is not in `types`.

    The argument `dtype` is an element type itself.
    """
    if name == "dtype":
        if to_dtype(given) not in types:
            raise TypeError(f"{layer}: dtype must be {_either(types)}, not {dtype_name(given)}")
        return
    for one in given if isinstance(given, (list, tuple)) else (given,):
        if isinstance(one, Variable) and one.type in _TYPED and one.dtype not in types:
            raise TypeError(
                f"{layer}: the element type of {name} must be {_either(types)}, but that of {one.name} is "
                f"{dtype_name(one.dtype)}"
            )


def _either(types: frozenset[VarType]) -> str:
    return " or ".join(sorted(dtype_name(dtype) for dtype in types))


@functools.cache
def types_of(text: str) -> frozenset[VarType]:
    return frozenset(to_dtype(name) for name in text.split())


@functools.cache
def kernel_types(op: str) -> frozenset[VarType]:
    """Returns the element types that an op takes: those of its kernels. An op with a kernel for float32 takes float16,
    too, and computes in float32 if it has no kernel for it."""
    types = {VAR_TYPES[number] for number in _penstock.op_kernel_types(op)} - {VarType.SIZE_T}
    return frozenset(types | {VarType.FP16} if VarType.FP32 in types else types)
