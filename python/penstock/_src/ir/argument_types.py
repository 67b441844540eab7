"""Checks of the element types of a layer's arguments, for layers that check them in Fluid."""

import functools
import inspect

from penstock import _penstock
from penstock._src.ir.types import VAR_TYPES, VarDesc, VarType, dtype_name, to_dtype
from penstock._src.ir.variable import Variable

_TYPED = (VarDesc.VarType.LOD_TENSOR, VarDesc.VarType.SELECTED_ROWS)


class ArgumentError(ValueError, TypeError, AssertionError):
    """A wrong argument. Fluid raises different exceptions for different arguments, and scripts catch any of them."""


def require_types(layer, name, given, types):
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


def _either(types):
    return " or ".join(sorted(dtype_name(dtype) for dtype in types))


def types_of(text):
    return frozenset(to_dtype(name) for name in text.split())


@functools.cache
def kernel_types(op: str) -> "frozenset[VarType]":
    """Returns the element types that an op takes: those of its kernels. An op with a kernel for float32 takes float16,
    too, and computes in float32 if it has no kernel for it."""
    types = {VAR_TYPES[number] for number in _penstock.op_kernel_types(op)} - {VarType.SIZE_T}
    return frozenset(types | {VarType.FP16} if VarType.FP32 in types else types)


def element_types(**types):
    """Decorates a layer whose arguments must have one of these element types.

    types  element types by argument name, such as 'float32 float64'. The layer itself checks arguments that are not
           Variables.
    """
    allowed = {name: types_of(text) for name, text in types.items()}

    def decorate(layer):
        signature = inspect.signature(layer)
        names = list(signature.parameters)
        checks = [(names.index(name), name, one) for name, one in allowed.items()]

        @functools.wraps(layer)
        def checked(*args, **kwargs):
            for place, name, one in checks:
                given = args[place] if place < len(args) else kwargs.get(name)
                if given is not None:
                    require_types(layer.__name__, name, given, one)
            return layer(*args, **kwargs)

        checked.__signature__ = signature
        return checked

    return decorate
