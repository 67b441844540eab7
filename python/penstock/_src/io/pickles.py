"""Pickles of {name: array}, as fluid.save writes them. Reading a pickle executes no code that the file names."""

from __future__ import annotations

import io
import pickle
import re
from typing import TYPE_CHECKING

import numpy

from penstock._src.base.errors import program_error

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from penstock._src.ir.typing import Array


# The name in older versions of numpy, so that every numpy can read the file.
_RECONSTRUCT = b"cnumpy.core.multiarray\n_reconstruct\n"
_RECONSTRUCT_NOW = b"cnumpy._core.multiarray\n_reconstruct\n"


def dumps(arrays: dict[str, Array]) -> bytes:
    """Returns the bytes that Fluid writes."""
    arrays = {name: numpy.ascontiguousarray(array) for name, array in arrays.items()}
    return pickle.dumps(arrays, protocol=2).replace(_RECONSTRUCT_NOW, _RECONSTRUCT, 1)


def loads(data: bytes, where: str) -> object:
    """Returns the contents of the pickle: arrays, numbers, strings, and dicts, lists and tuples of these. Raises an
    error that names `where` for anything else."""
    try:
        return _value(_Reader(io.BytesIO(data), encoding="latin1").load())
    except _Refused as error:
        raise program_error("E-load-pickle", f"{where} holds {error}; only numpy arrays in dicts are read") from None
    except Exception as error:  # damaged bytes may cause any error, including a huge allocation
        raise program_error("E-load-pickle", f"{where} is not a pickle of numpy arrays: {error}") from None


class _Refused(Exception):
    pass


class _Array:
    """Replaces numpy arrays while a pickle is read, so that numpy never receives a state from the file."""

    # What the file says, of any type.
    dtype: object
    shape: Any
    data: object
    fortran: object

    def __init__(self, dtype: object = None, shape: object = None, data: object = b"", fortran: object = False) -> None:
        self.dtype, self.shape, self.data, self.fortran = dtype, shape, data, fortran

    def __setstate__(self, state: tuple[object, object, object, object, object]) -> None:
        _, self.shape, self.dtype, self.fortran, self.data = state

    def array(self) -> Array:
        if not isinstance(self.dtype, _DType) or not isinstance(self.data, (bytes, bytearray, str)):
            raise _Refused("an array of Python objects")
        data = self.data.encode("latin1") if isinstance(self.data, str) else self.data
        flat = numpy.frombuffer(data, self.dtype.dtype()).copy()
        shaped: Array = flat.reshape(self.shape, order="F" if self.fortran else "C")
        return shaped


class _DType:
    order: Any = "|"

    def __init__(self, text: object, *flags: object) -> None:
        self.text = text

    def __setstate__(self, state: tuple[object, ...]) -> None:
        self.order = state[1]

    def dtype(self) -> numpy.dtype[Any]:
        if not isinstance(self.text, str) or not re.fullmatch("[biuf][0-9]{1,2}", self.text):
            raise _Refused(f"an array of {'Python objects' if self.text == 'O8' else self.text}")
        kind: numpy.dtype[Any] = numpy.dtype(self.text).newbyteorder(self.order)
        return kind


def _reconstruct(kind: object, shape: object, typecode: object) -> _Array:
    return _Array()


def _from_buffer(data: bytearray, dtype: object, shape: object, order: object) -> _Array:
    return _Array(dtype, shape, bytes(data), order == "F")


class _Scalar(_Array):
    """A number of numpy's."""

    def __init__(self, dtype: object, data: object = b"") -> None:
        super().__init__(dtype, (), data)

    def array(self) -> Array:
        number: Array = super().array()[()]
        return number


def _encode(text: str, encoding: str) -> bytes:
    return text.encode("latin1")


def _no_bytes() -> bytes:
    """The function that old protocols call for b''."""
    return b""


_ADMITTED: dict[tuple[str, str], Callable[..., object]] = {
    ("numpy", "ndarray"): _Array,
    ("numpy", "dtype"): _DType,
    ("_codecs", "encode"): _encode,
    ("builtins", "bytes"): _no_bytes,
    ("__builtin__", "bytes"): _no_bytes,
    ("collections", "OrderedDict"): dict,
}
for _core in ("numpy.core", "numpy._core"):
    _ADMITTED[_core + ".multiarray", "_reconstruct"] = _reconstruct
    _ADMITTED[_core + ".multiarray", "scalar"] = _Scalar
    _ADMITTED[_core + ".numeric", "_frombuffer"] = _from_buffer


class _Reader(pickle._Unpickler):
    """Python's unpickler written in Python; in the C version, eight bytes of a file can request gigabytes of memory."""

    def find_class(self, module: str, name: str) -> Callable[..., object]:
        if (module, name) not in _ADMITTED:
            raise _Refused(f"{module}.{name}")
        return _ADMITTED[module, name]


def _value(value: object) -> object:
    if isinstance(value, _Array):
        return value.array()
    if isinstance(value, dict):
        return {_value(key): _value(one) for key, one in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(_value(one) for one in value)
    if value is None or isinstance(value, (bool, int, float, str, bytes)):
        return value
    raise _Refused(f"a {type(value).__name__.lstrip('_')}")
