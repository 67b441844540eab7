"""broadcast_object and allgather_object: plain Python values of ranks.

Values travel in a format of their own, not as pickles, so that receiving a value never runs code. A value is a letter
and its content; containers state the number of their values.
"""

from __future__ import annotations

import argparse
import collections
import io
import struct
import types
from typing import TYPE_CHECKING, cast

import numpy

from penstock._src.base.doc_texts import with_texts
from penstock._src.base.errors import program_error
from penstock._src.hvd.operations import Call
from penstock._src.hvd.process_sets import global_process_set
from penstock._src.hvd.texts import ARRAYS

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, BinaryIO, NoReturn

    from penstock._penstock import ProgramError
    from penstock._src.hvd.process_sets import ProcessSet
    from penstock._src.ir.typing import Array


_SEQUENCES: dict[type, bytes] = {list: b"l", tuple: b"t", set: b"s", frozenset: b"z", collections.deque: b"q"}
_MAPPINGS: dict[type, bytes] = {
    dict: b"d",
    collections.OrderedDict: b"o",
    argparse.Namespace: b"n",
    types.SimpleNamespace: b"p",
}
_SEQUENCE_OF = {letter: kind for kind, letter in _SEQUENCES.items()}
_MAPPING_OF = {letter: kind for kind, letter in _MAPPINGS.items()}
_DEPTH_MAX = 200


def _count(out: BinaryIO, letter: bytes, number: int) -> None:
    out.write(letter + struct.pack("<q", number))


def _blob(out: BinaryIO, letter: bytes, data: bytes) -> None:
    _count(out, letter, len(data))
    out.write(data)


class _Unsupported(Exception):
    pass


def _write(out: BinaryIO, value: Any, depth: int = 0) -> None:
    """Appends a value; raises _Unsupported with the type that cannot be sent."""
    if depth > _DEPTH_MAX:
        raise _Unsupported(f"values nested more than {_DEPTH_MAX} deep")
    kind = type(value)
    if value is None or kind is bool:
        out.write({None: b"N", True: b"T", False: b"F"}[value])
    elif kind is int:
        _blob(out, b"i", str(value).encode() if abs(value) < 10**4000 else _refused_int())
    elif kind is float:
        out.write(b"f" + struct.pack("<d", value))
    elif kind is complex:
        out.write(b"c" + struct.pack("<dd", value.real, value.imag))
    elif kind is str:
        _blob(out, b"u", value.encode("utf-8", "surrogatepass"))
    elif kind in (bytes, bytearray):
        _blob(out, b"b" if kind is bytes else b"y", bytes(value))
    elif kind is numpy.ndarray or isinstance(value, numpy.generic):
        _write_array(out, value)
    elif isinstance(value, numpy.dtype) and not value.hasobject:
        _blob(out, b"D", value.str.encode())
    elif kind in _SEQUENCES:
        _count(out, _SEQUENCES[kind], len(value))
        for each in value:
            _write(out, each, depth + 1)
    elif kind in _MAPPINGS:
        pairs = value.items() if isinstance(value, dict) else vars(value).items()
        _count(out, _MAPPINGS[kind], len(pairs))
        for key, each in pairs:
            _write(out, key, depth + 1)
            _write(out, each, depth + 1)
    else:
        raise _Unsupported(f"a {kind.__module__}.{kind.__qualname__}")


def _refused_int() -> NoReturn:
    raise _Unsupported("an int of more than 4000 digits")


def _write_array(out: BinaryIO, value: Array | float) -> None:
    array = numpy.asarray(value)
    if array.dtype.hasobject or array.dtype.fields is not None:
        raise _Unsupported(f"an array of {array.dtype}")
    _blob(out, b"a" if isinstance(value, numpy.ndarray) else b"g", array.dtype.str.encode())
    _count(out, b"", array.ndim)
    for extent in array.shape:
        _count(out, b"", extent)
    out.write(numpy.ascontiguousarray(array).tobytes())


def _number(data: BinaryIO) -> int:
    return cast(int, struct.unpack("<q", data.read(8))[0])


def _read(data: BinaryIO) -> Any:
    letter = data.read(1)
    if letter in (b"N", b"T", b"F"):
        return {b"N": None, b"T": True, b"F": False}[letter]
    if letter == b"f":
        return struct.unpack("<d", data.read(8))[0]
    if letter == b"c":
        return complex(*struct.unpack("<dd", data.read(16)))
    if letter in _SEQUENCE_OF:
        return _SEQUENCE_OF[letter](_read(data) for _ in range(_number(data)))
    if letter in _MAPPING_OF:
        kind, pairs = _MAPPING_OF[letter], [(_read(data), _read(data)) for _ in range(_number(data))]
        return kind(pairs) if issubclass(kind, dict) else kind(**dict(pairs))
    text = data.read(_number(data))
    if letter in (b"a", b"g"):
        return _read_array(data, numpy.dtype(text.decode()), letter)
    readers: dict[bytes, Callable[[], object]] = {
        b"i": lambda: int(text),
        b"u": lambda: text.decode("utf-8", "surrogatepass"),
        b"b": lambda: text,
        b"y": lambda: bytearray(text),
        b"D": lambda: numpy.dtype(text.decode()),
    }
    return readers[letter]()


def _read_array(data: BinaryIO, dtype: numpy.dtype[Any], letter: bytes) -> Any:  # an array or a NumPy number
    shape = tuple(_number(data) for _ in range(_number(data)))
    array = numpy.frombuffer(data.read(dtype.itemsize * int(numpy.prod(shape, dtype="int64"))), dtype)
    array = array.reshape(shape).copy()
    return array if letter == b"a" else array[()]


def _encoded(value: object) -> tuple[bytes, str]:
    """Returns (bytes, '') or (b'', what cannot be sent)."""
    out = io.BytesIO()
    try:
        _write(out, value)
    except _Unsupported as error:
        return b"", str(error)
    return out.getvalue(), ""


def _refused(function: str, rank: int, what: str) -> ProgramError:
    return program_error(
        "E-hvd-object",
        f"hvd.{function}: rank {rank} gives {what}; ranks exchange None, bool, int, float, complex, str, bytes, "
        "lists, tuples, sets, dicts, namespaces and NumPy arrays of these",
    )


@with_texts(ARRAYS)
def broadcast_object(
    obj: object, root_rank: int = 0, name: str | None = None, process_set: ProcessSet = global_process_set
) -> object:
    """Returns the Python value of one rank on all ranks.

    Args:
        obj (object): None, a number, a text, bytes, a NumPy array, or a list, tuple, set, dict or Namespace of these,
            nested as deep as 200; ignored on other ranks.
        root_rank (int): the rank, of the job, whose value all ranks receive.
        {name_and_set}

    Returns:
        object: the root's value; on other ranks a copy of it.

    Raises:
        penstock.ProgramError: the value contains an object of another type (E-hvd-object); all ranks raise it.

    {example}
        epoch = hvd.broadcast_object({'epoch': 3}, root_rank=0)['epoch']
    """
    call = Call("broadcast_object", name, process_set)
    root = call.ring.position_of(call.function, root_rank)
    mine = call.ring.position == root
    data, wrong = _encoded(obj) if mine else (b"", "")
    size = numpy.array([-len(wrong.encode()) if wrong else len(data)], "int64")
    call.broadcast(size, root).wait()
    content = numpy.frombuffer(bytearray(wrong.encode() or data) if mine else bytearray(abs(int(size[0]))), "uint8")
    call.broadcast(content, root).wait()
    if size[0] < 0:
        raise _refused(call.function, int(root_rank), content.tobytes().decode())
    return obj if mine else _read(io.BytesIO(content.tobytes()))


@with_texts(ARRAYS)
def allgather_object(obj: object, name: str | None = None, process_set: ProcessSet = global_process_set) -> list[Any]:
    """Returns the Python values of all ranks.

    Args:
        obj (object): as for `broadcast_object`.
        {name_and_set}

    Returns:
        list: the values in the order of the ranks.

    Raises:
        penstock.ProgramError: a value contains an object of another type (E-hvd-object); all ranks raise it.

    {example}
        names = hvd.allgather_object('rank %d' % hvd.rank())
    """
    call = Call("allgather_object", name, process_set)
    data, wrong = _encoded(obj)
    ranks = call.ring.ranks
    sizes = numpy.empty(2 * len(ranks), "int64")
    mine = numpy.frombuffer(wrong.encode() or data, "uint8")
    call.all_gather(numpy.array([bool(wrong), len(mine)], "int64"), sizes, [2] * len(ranks)).wait()
    counts = [int(count) for count in sizes[1::2]]
    content = numpy.empty(sum(counts), "uint8")
    call.all_gather(mine, content, counts).wait()
    ends = numpy.cumsum([0] + counts)
    parts = [content[ends[i] : ends[i + 1]].tobytes() for i in range(len(ranks))]
    for rank, refused, part in zip(ranks, sizes[::2], parts):
        if refused:
            raise _refused(call.function, rank, part.decode())
    return [obj if i == call.ring.position else _read(io.BytesIO(part)) for i, part in enumerate(parts)]
