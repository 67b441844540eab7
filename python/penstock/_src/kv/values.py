"""The values of keys: arrays, tensors of other libraries, and rows of tables.

array = to_value(value)        # a NumPy array over the memory of `value`, or the RowSparse itself
out = to_out(out)              # the array that a pull fills
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Union

import numpy

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    Array = NDArray[Any]
    Value = Union["Array", "RowSparse"]


class RowSparse:
    """Some rows of a table; all other rows are zero.

    Args:
        rows (array): the ids of the rows: integers of any order and shape, which become int64 `[n]`. An id may occur
            several times; its rows are then added.
        values (array): the rows, `[n, ...]`.
        shape (tuple[int, ...]): the shape of the table, `[height, ...]`.

    Raises:
        ValueError: the shapes do not agree, or an id is outside the table.

    Example:
        rows = penstock.kv.RowSparse([1, 3], np.ones((2, 4), 'float32'), (6, 4))
        assert rows.to_dense().sum() == 8 and rows.dtype == 'float32'
    """

    def __init__(self, rows: object, values: object, shape: Sequence[int]) -> None:
        ids = numpy.asarray(rows).reshape(-1)
        if ids.size and ids.dtype.kind not in "iuf":
            raise ValueError(f"RowSparse: ids of rows are integers, not elements of type {ids.dtype}")
        self.rows: NDArray[numpy.int64] = ids.astype("int64", copy=False)
        self.values: Array = array_of(values, "RowSparse")
        self.shape: tuple[int, ...] = tuple(int(extent) for extent in shape)
        if not self.shape or self.values.shape != (self.rows.size, *self.shape[1:]):
            raise ValueError(
                f"RowSparse: {self.rows.size} rows of a table of shape {list(self.shape)} have shape "
                f"{[self.rows.size, *self.shape[1:]]}, not {list(self.values.shape)}"
            )
        outside = (self.rows < 0) | (self.rows >= self.shape[0])
        if outside.any():
            raise ValueError(f"RowSparse: row {self.rows[outside][0]} is not in a table of {self.shape[0]} rows")

    @property
    def dtype(self) -> numpy.dtype[Any]:
        """The type of the elements."""
        return self.values.dtype

    def to_dense(self) -> Array:
        """Returns the whole table.

        Returns:
            numpy.ndarray: an array of `shape`; rows that are not given are zero.
        """
        table = numpy.zeros(self.shape, self.dtype)
        numpy.add.at(table, self.rows, self.values)
        return table

    def merged(self) -> RowSparse:
        """Returns the same rows with ascending ids, each once; rows of the same id are added.

        Returns:
            RowSparse: this object if its ids are ascending already.
        """
        if (self.rows[1:] > self.rows[:-1]).all():
            return self
        ids, place = numpy.unique(self.rows, return_inverse=True)
        values = numpy.zeros((ids.size, *self.shape[1:]), self.dtype)
        numpy.add.at(values, place.reshape(-1), self.values)
        return RowSparse(ids, values, self.shape)

    def __repr__(self) -> str:
        return f"<RowSparse of {self.rows.size} rows, shape {list(self.shape)}, {self.dtype}>"


def array_of(value: object, what: str) -> Array:
    """Returns an array over the memory of a value, without a copy where the value has memory that NumPy can read.

    Raises:
        TypeError: the value is no array or number of this process's memory; `what` names it.
    """
    if type(value) is numpy.ndarray:
        return value
    if isinstance(value, numpy.ma.MaskedArray):
        raise TypeError(f"{what}: a masked array has elements without a value; fill them first")
    if hasattr(value, "__dlpack__") and not isinstance(value, numpy.ndarray):
        return _array_of_tensor(value, what)
    if not isinstance(value, (str, bytes)):
        array = numpy.asarray(value)
        if array.dtype.kind in "biuf":
            return array
    raise TypeError(f"{what}: a value is an array or a RowSparse, not {type(value).__name__}")


def to_value(value: object, what: str) -> Value:
    """Returns a value to store or to add: an array over its memory, or rows.

    Raises:
        TypeError: as array_of().
    """
    if isinstance(value, RowSparse):
        return value
    if getattr(value, "is_sparse", False):  # a tensor of PyTorch in coordinates
        tensor = value.detach().coalesce()  # type: ignore[attr-defined]
        return RowSparse(array_of(tensor.indices()[0], what), array_of(tensor.values(), what), tensor.shape)
    return array_of(value, what)


def to_out(out: object, what: str) -> Array:
    """Returns the array over the memory of `out`, which a pull fills.

    Raises:
        TypeError: `out` has no memory that can be written.
    """
    if isinstance(out, (list, tuple, int, float, str, bytes)) or out is None:
        raise TypeError(f"{what}: out is an array, not {type(out).__name__}")
    array = array_of(out, what)
    if not array.flags.writeable:
        raise TypeError(f"{what}: out is read-only, so it cannot receive a value")
    return array


def _array_of_tensor(value: object, what: str) -> Array:
    if hasattr(value, "detach"):  # PyTorch; NumPy could not write into what its DLPack export returns
        value = value.detach()
        if str(getattr(value, "device", "cpu")) != "cpu":
            raise TypeError(f"{what}: the tensor is on {value.device}; give value.cpu()")  # type: ignore[attr-defined]
        return value.numpy()  # type: ignore[attr-defined,no-any-return]
    return numpy.from_dlpack(value)  # type: ignore[arg-type]
