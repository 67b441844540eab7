"""Converts what users feed to arrays of a variable's element type. A value that would change is an error."""

from __future__ import annotations

import numbers
from typing import TYPE_CHECKING

import numpy

from penstock import _penstock
from penstock._src.base.errors import program_error
from penstock._src.ir.types import dtype_name, to_dtype

if TYPE_CHECKING:
    from collections.abc import Iterable
    from fractions import Fraction

    from penstock._src.ir.types import VarType
    from penstock._src.ir.typing import Array
    from penstock._src.ir.variable import Variable


# Integers beyond it may be rounded in an array of float64.
_EXACT_FLOAT_MAX = 2**53


def converted(value: object, var: Variable, what: str = "feed") -> Array:
    """Returns a value as an array of a variable's element type.

    Integers and fractions keep their values; only a float that becomes a shorter float is rounded.

    Args:
        value (object): an array, a number, or lists of them; anything that numpy.asarray takes.
        var (Variable): the variable; its name stands in errors.
        what (str): what the value is, for errors.

    Returns:
        numpy.ndarray: the value itself if it is an array of this type.

    Raises:
        penstock.ProgramError: E-feed-value: a number has no equal in the element type; E-feed-type: the elements are
            no numbers; E-array-masked: an element is masked.
    """
    dtype = var.dtype
    if type(value) is numpy.ndarray and value.dtype == dtype_name(dtype):
        return value
    return to_array(value, dtype, var.name, what)


def to_array(value: object, dtype: VarType | str, name: str, what: str = "feed") -> Array:
    """The same as converted() for a variable of this name and element type."""
    array = given_array(value, name, what)
    if array.dtype == dtype_name(dtype):
        return array
    if array.dtype.kind not in "biufO":
        raise program_error("E-feed-type", f"{what}: {name} takes numbers, not elements of type {array.dtype}")
    dtype = to_dtype(dtype)
    may_be_rounded = array.dtype.kind == "f" and not isinstance(value, numpy.ndarray) and dtype_name(dtype)[0] in "iu"
    if may_be_rounded and array.size and not numpy.abs(array).max() < _EXACT_FLOAT_MAX:
        array = numpy.asarray(value, object)  # a list of integers and fractions
    if array.dtype.kind == "O":
        return _from_objects(array, dtype, name, what)
    if not array.dtype.isnative:
        array = array.astype(array.dtype.newbyteorder("="))
    return _penstock.convert_array(array, int(dtype), what, name)


def given_array(value: object, name: str, what: str = "feed") -> Array:
    """Returns a value as an array of its own element type. Raises ProgramError if it is masked or ragged."""
    if type(value) is numpy.ndarray:
        return value
    if isinstance(value, numpy.ndarray):
        _penstock.require_unmasked(value, f"{what}: {name}")
        return numpy.asarray(value)
    if isinstance(value, (list, tuple)):
        require_unmasked_parts(value, name, what)
    try:
        return numpy.asarray(value)
    except ValueError as error:
        raise program_error("E-feed-type", f"{what}: the lists of {name} differ in length or depth: {error}") from None


def require_unmasked_parts(values: Iterable[object], name: str, what: str = "feed") -> None:
    """Raises ProgramError if an array in a list is masked. numpy.array drops the masks of the arrays in a list."""
    kinds = set(map(type, values))
    if not any(issubclass(kind, (numpy.ma.MaskedArray, list, tuple)) for kind in kinds):
        return
    for i, one in enumerate(values):
        place = f"{name}[{i}]"
        if isinstance(one, numpy.ma.MaskedArray):
            _penstock.require_unmasked(one, f"{what}: {place}")
        elif isinstance(one, (list, tuple)):
            require_unmasked_parts(one, place, what)


def _from_objects(array: Array, dtype: VarType, name: str, what: str) -> Array:
    """Converts an array of Python objects, one by one."""
    out = numpy.empty(array.shape, dtype_name(dtype))
    for index in numpy.ndindex(array.shape):
        element = f"{name}{list(index) if index else ''}"
        one = numpy.asarray(array[index]) if isinstance(array[index], numbers.Real) else None
        if one is None:
            raise program_error("E-feed-type", f"{what}: {element} is {array[index]!r:.60}, which is no number")
        if one.dtype.kind == "O":  # an integer beyond 64 bits, or a Fraction
            one = _nearest_float(array[index], dtype, element, what)
        out[index] = to_array(one, dtype, element, what)
    return out


def _nearest_float(number: Fraction | int, dtype: VarType, element: str, what: str) -> Array:
    rounded = None
    if dtype_name(dtype).startswith("float"):
        try:
            rounded = float(number)
        except OverflowError:
            pass
    if rounded is None or (isinstance(number, numbers.Integral) and rounded != number):
        raise program_error("E-feed-value", f"{what}: {element} = {number} has no equal in {dtype_name(dtype)}")
    return numpy.asarray(rounded)
