"""Arrays with MXNet's names: NDArray, RowSparseNDArray, and functions that make them.

a = mx.nd.array([[1, 2], [3, 4]])      # float32
a[:] = 5
print((a * 2).asnumpy())
"""

from __future__ import annotations

import types
from collections.abc import Callable
from typing import Any

import numpy

from penstock import kv as keyed
from penstock.compat.mxnet.arrays import NDArray, RowSparseNDArray
from penstock.compat.mxnet.context import Context


def array(source_array: Any, ctx: Context | None = None, dtype: Any = None) -> NDArray:
    """Makes an array of the elements of another one, or of lists.

    Args:
        source_array (array | list): the elements, which are copied.
        ctx (Context | None): its context.
        dtype (str | None): the type of the elements; None: float32, or that of an NDArray.

    Returns:
        NDArray: the array.

    Example:
        import penstock.compat.mxnet as mx
        assert mx.nd.array(np.arange(3)).dtype == np.float32
    """
    if dtype is None:
        dtype = source_array.dtype if isinstance(source_array, NDArray) else "float32"
    if isinstance(source_array, RowSparseNDArray):
        return source_array.copyto(source_array.context)
    return NDArray(numpy.array(source_array, dtype=dtype), ctx)


def _filled(name: str, doc: str) -> Callable[..., NDArray]:
    make = getattr(numpy, name)

    def filled(shape: Any, ctx: Context | None = None, dtype: Any = None, stype: str = "default", **_: Any) -> NDArray:
        found = NDArray(make(shape, dtype=dtype or "float32"), ctx)
        return found if stype in ("default", None) else found.tostype(stype)

    filled.__name__ = name
    filled.__doc__ = f"""{doc}

    Args:
        shape (int | tuple[int, ...]): its extents.
        ctx (Context | None): its context.
        dtype (str | None): the type of its elements; None: float32.
        stype (str): 'default' or 'row_sparse'.

    Returns:
        NDArray: the array.

    Example:
        import penstock.compat.mxnet as mx
        assert mx.nd.{name}((2, 3)).shape == (2, 3)
    """
    return filled


zeros = _filled("zeros", "Makes an array of zeros.")
ones = _filled("ones", "Makes an array of ones.")
empty = _filled("empty", "Makes an array of any elements.")


def full(shape: Any, val: float, ctx: Context | None = None, dtype: Any = None) -> NDArray:
    """Makes an array of one number.

    Args:
        shape (int | tuple[int, ...]): its extents.
        val (number): the number.
        ctx (Context | None): its context.
        dtype (str | None): the type of its elements; None: float32.

    Returns:
        NDArray: the array.

    Example:
        import penstock.compat.mxnet as mx
        assert mx.nd.full((2,), 5).asnumpy().tolist() == [5, 5]
    """
    return NDArray(numpy.full(shape, val, dtype or "float32"), ctx)


def arange(
    start: float, stop: float | None = None, step: float = 1.0, ctx: Context | None = None, dtype: Any = "float32"
) -> NDArray:
    """Makes an array of evenly spaced numbers.

    Args:
        start (number): the first one; without `stop` the end, and the first one is 0.
        stop (number | None): the end.
        step (number): the distance.
        ctx (Context | None): its context.
        dtype (str): the type of its elements.

    Returns:
        NDArray: the array.

    Example:
        import penstock.compat.mxnet as mx
        assert mx.nd.arange(3).asnumpy().tolist() == [0, 1, 2]
    """
    first, end = (0, start) if stop is None else (start, stop)
    return NDArray(numpy.arange(first, end, step, dtype=dtype), ctx)


def waitall() -> None:
    """Does nothing: arrays wait for what fills them when they are read.

    Example:
        import penstock.compat.mxnet as mx
        mx.nd.waitall()
    """


def row_sparse_array(arg1: Any, shape: Any = None, ctx: Context | None = None, dtype: Any = None) -> NDArray:
    """Makes an array of rows.

    Args:
        arg1 (tuple | array): (rows, ids), or a whole table.
        shape (tuple[int, ...] | None): the extents of the table; None: as far as the last id.
        ctx (Context | None): its context.
        dtype (str | None): the type of its elements; None: float32.

    Returns:
        RowSparseNDArray: the rows, in ascending order.

    Example:
        import penstock.compat.mxnet as mx
        assert mx.nd.sparse.row_sparse_array((np.ones((1, 2)), [3]), shape=(5, 2)).shape == (5, 2)
    """
    if not isinstance(arg1, tuple):
        return array(arg1, ctx, dtype).tostype("row_sparse")
    values, ids = (numpy.asarray(one) for one in arg1)
    values = values.astype(dtype or "float32")
    height = int(ids.max()) + 1 if ids.size else 0
    return RowSparseNDArray(keyed.RowSparse(ids, values, shape or (height, *values.shape[1:])).merged(), ctx)


def _sparse_zeros(stype: str, shape: Any, ctx: Context | None = None, dtype: Any = None) -> NDArray:
    return zeros(shape, ctx, dtype, stype)


sparse = types.SimpleNamespace(
    RowSparseNDArray=RowSparseNDArray, array=row_sparse_array, row_sparse_array=row_sparse_array, zeros=_sparse_zeros
)


def _drawn(draw: Callable[..., Any]) -> Callable[..., NDArray]:
    def drawn(
        first: float = 0.0,
        second: float = 1.0,
        shape: Any = (1,),
        dtype: Any = None,
        ctx: Context | None = None,
        **_: Any,
    ) -> NDArray:
        return NDArray(draw(first, second, shape).astype(dtype or "float32"), ctx)

    return drawn


random = types.SimpleNamespace(
    uniform=_drawn(lambda low, high, shape: numpy.random.uniform(low, high, shape)),
    normal=_drawn(lambda mean, width, shape: numpy.random.normal(mean, width, shape)),
    seed=lambda seed, ctx="all": numpy.random.seed(seed),
)

__all__ = [
    "NDArray",
    "RowSparseNDArray",
    "arange",
    "array",
    "empty",
    "full",
    "ones",
    "random",
    "row_sparse_array",
    "sparse",
    "waitall",
    "zeros",
]
