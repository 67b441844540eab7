"""NDArray and RowSparseNDArray: arrays with MXNet's names."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy

from penstock import kv as keyed
from penstock.compat.mxnet.context import Context, cpu


class NDArray:
    """An array of numbers in this process's memory.

    What a pull fills is complete when the array is next read: reading waits.

    Args:
        data (numpy.ndarray): the elements; the array shares their memory.
        ctx (Context | None): its context.

    Example:
        import penstock.compat.mxnet as mx
        a = mx.nd.array([[1, 2], [3, 4]])
        a[:] = a + 1
        assert a.asnumpy().sum() == 14 and a.shape == (2, 2) and a.dtype == np.float32
    """

    stype = "default"

    def __init__(self, data: Any, ctx: Context | None = None) -> None:
        self._array = data
        self._ticket = None  # of a pull that fills it
        self.context = ctx or cpu()

    @property
    def ctx(self) -> Context:
        """The context."""
        return self.context

    @property
    def shape(self) -> tuple[int, ...]:
        """The extents."""
        return self._array.shape

    @property
    def size(self) -> int:
        """The number of elements."""
        return math.prod(self.shape)

    @property
    def ndim(self) -> int:
        """The number of extents."""
        return len(self.shape)

    @property
    def dtype(self) -> Any:
        """The type of the elements, a class of NumPy."""
        return self._array.dtype.type

    @property
    def T(self) -> NDArray:
        """The transposed array."""
        return NDArray(self.asnumpy().T, self.context)

    def _ready(self) -> Any:
        self.wait_to_read()
        return self._array

    def wait_to_read(self) -> None:
        """Waits until the pull that fills the array is complete."""
        ticket, self._ticket = self._ticket, None
        if ticket is not None:
            ticket.wait()

    def asnumpy(self) -> Any:
        """Returns a copy.

        Returns:
            numpy.ndarray: the elements.
        """
        return self._ready().copy()

    def asscalar(self) -> Any:
        """Returns the element of an array of one.

        Returns:
            number: of NumPy's type.

        Raises:
            ValueError: there are several elements.
        """
        if self.size != 1:
            raise ValueError("The current array is not a scalar")
        return self._ready().reshape(-1)[0]

    def astype(self, dtype: Any, copy: bool = True) -> NDArray:
        """Returns the elements as another type.

        Args:
            dtype (str | type): the type.
            copy (bool): whether the result is a copy if it has the type already.

        Returns:
            NDArray: the converted array.
        """
        return NDArray(self._ready().astype(dtype, copy=copy), self.context)

    def copy(self) -> NDArray:
        """Returns a copy.

        Returns:
            NDArray: with memory of its own.
        """
        return NDArray(self.asnumpy(), self.context)

    def copyto(self, other: Any) -> NDArray:
        """Copies the elements into another array, or into a new one of a context.

        Args:
            other (NDArray | Context): where to.

        Returns:
            NDArray: the other array.
        """
        if isinstance(other, NDArray):
            other[:] = self
            return other
        return NDArray(self.asnumpy(), other)

    def as_in_context(self, context: Context) -> NDArray:
        """Returns the array in a context.

        Args:
            context (Context): the context.

        Returns:
            NDArray: this array, or a copy.
        """
        return self if context == self.context else self.copyto(context)

    def reshape(self, *shape: Any, **_: Any) -> NDArray:
        """Returns the elements in another shape.

        Args:
            *shape (int | tuple): the extents; one may be -1.

        Returns:
            NDArray: shares the memory.
        """
        wanted = shape[0] if len(shape) == 1 and isinstance(shape[0], (list, tuple)) else shape
        return NDArray(self._ready().reshape(wanted), self.context)

    def tostype(self, stype: str) -> NDArray:
        """Returns the array in a storage type.

        Args:
            stype (str): 'default' or 'row_sparse'.

        Returns:
            NDArray: an NDArray or RowSparseNDArray.

        Raises:
            ValueError: another type.
        """
        if stype == "default":
            return self
        if stype != "row_sparse":
            raise ValueError(f"tostype: {stype!r} is not supported; there are 'default' and 'row_sparse'")
        array = self._ready()
        rows = numpy.flatnonzero(array.reshape(array.shape[0], -1).any(1))
        return RowSparseNDArray(keyed.RowSparse(rows, array[rows], array.shape), self.context)

    def sum(self, *args: Any, **named: Any) -> NDArray:
        """Returns the sum, as numpy.sum.

        Args:
            *args (int): the axes.
            **named (bool): keepdims.

        Returns:
            NDArray: of shape (1,) if it is one number.
        """
        return NDArray(numpy.atleast_1d(self._ready().sum(*args, **named)), self.context)

    def __getitem__(self, key: Any) -> NDArray:
        found = self._ready()[_plain(key)]
        return NDArray(numpy.atleast_1d(found) if numpy.ndim(found) == 0 else found, self.context)

    def __setitem__(self, key: Any, value: Any) -> None:
        self._ready()[_plain(key)] = _plain(value)

    def __len__(self) -> int:
        return self.shape[0]

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        array = self._ready()
        return array.astype(dtype) if dtype is not None or copy else array

    def __neg__(self) -> NDArray:
        return NDArray(-self._ready(), self.context)

    def __float__(self) -> float:
        return float(self.asscalar())

    def __int__(self) -> int:
        return int(self.asscalar())

    def __bool__(self) -> bool:
        return bool(self.asscalar())

    __hash__ = object.__hash__

    def __repr__(self) -> str:
        return f"\n{self._ready()}\n<{type(self).__name__} {'x'.join(map(str, self.shape))} @{self.context}>"


def _plain(value: Any) -> Any:
    return value._ready() if isinstance(value, NDArray) else value


def _operator(name: str) -> Callable[[NDArray, object], NDArray]:
    def of_two(self, other: Any) -> NDArray:
        array = self._ready()
        found = getattr(array, name)(_plain(other))
        return found if found is NotImplemented else NDArray(found.astype(array.dtype, copy=False), self.context)

    of_two.__name__ = name
    return of_two


def _operator_in_place(name: str) -> Callable[[NDArray, object], NDArray]:
    def of_two(self, other: Any) -> NDArray:
        getattr(self._ready(), name)(_plain(other))
        return self

    of_two.__name__ = name
    return of_two


for _name in "add sub mul truediv pow mod".split():
    for _kind in ("", "r"):
        setattr(NDArray, f"__{_kind}{_name}__", _operator(f"__{_kind}{_name}__"))
    setattr(NDArray, f"__i{_name}__", _operator_in_place(f"__i{_name}__"))
for _name in "eq ne lt le gt ge".split():
    setattr(NDArray, f"__{_name}__", _operator(f"__{_name}__"))


class RowSparseNDArray(NDArray):
    """Rows of a table; all other rows are zero.

    Args:
        rows (penstock.kv.RowSparse): the rows.
        ctx (Context | None): its context.

    Example:
        import penstock.compat.mxnet as mx
        rows = mx.nd.sparse.row_sparse_array((np.ones((1, 2)), [3]), shape=(5, 2))
        assert rows.indices.asnumpy().tolist() == [3] and rows.asnumpy().sum() == 2
    """

    stype = "row_sparse"

    def __init__(self, rows: keyed.RowSparse, ctx: Context | None = None) -> None:
        super().__init__(None, ctx)
        self.rows = rows

    @property
    def shape(self) -> tuple[int, ...]:
        """The extents of the table."""
        return self.rows.shape

    @property
    def dtype(self) -> Any:
        """The type of the elements, a class of NumPy."""
        return self.rows.dtype.type

    @property
    def indices(self) -> NDArray:
        """The ids of the rows."""
        return NDArray(self.rows.rows, self.context)

    @property
    def data(self) -> NDArray:
        """The rows."""
        return NDArray(self.rows.values, self.context)

    def _ready(self) -> Any:
        return self.rows.to_dense()

    def copyto(self, other: Any) -> NDArray:
        """Copies the rows into another array, or into a new one of a context.

        Args:
            other (NDArray | Context): where to.

        Returns:
            NDArray: the other array.
        """
        if isinstance(other, RowSparseNDArray):
            other.rows = keyed.RowSparse(self.rows.rows.copy(), self.rows.values.copy(), self.shape)
            return other
        if isinstance(other, NDArray):
            return super().copyto(other)
        return RowSparseNDArray(self.rows, other)

    def tostype(self, stype: str) -> NDArray:
        """Returns the array in a storage type.

        Args:
            stype (str): 'default' or 'row_sparse'.

        Returns:
            NDArray: an NDArray or RowSparseNDArray.
        """
        return self if stype == "row_sparse" else NDArray(self._ready(), self.context).tostype(stype)

    def retain(self, indices: NDArray) -> RowSparseNDArray:
        """Returns some of the rows.

        Args:
            indices (NDArray): their ids.

        Returns:
            RowSparseNDArray: those that the array has.
        """
        wanted = numpy.isin(self.rows.rows, numpy.asarray(indices).astype("int64"))
        return RowSparseNDArray(
            keyed.RowSparse(self.rows.rows[wanted], self.rows.values[wanted], self.shape), self.context
        )


__all__ = ["NDArray", "RowSparseNDArray"]
