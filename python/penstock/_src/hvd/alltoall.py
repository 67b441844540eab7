"""Operations after which each rank has a part of the result: alltoall and reducescatter."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy

from penstock._src.base.doc_texts import with_texts
from penstock._src.base.errors import program_error
from penstock._src.hvd.arrays import exchange_shapes
from penstock._src.hvd.compression import Compression
from penstock._src.hvd.operations import (
    Adasum,
    Average,
    Call,
    Operation,
    check_mean,
    copied,
    factor_of,
    keep,
    reduction_of,
    scale,
    type_of,
)
from penstock._src.hvd.process_sets import global_process_set
from penstock._src.hvd.texts import ARRAYS

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from penstock._src.hvd.compression import Method
    from penstock._src.hvd.operations import Reduction
    from penstock._src.hvd.process_sets import ProcessSet
    from penstock._src.ir.typing import Array


def _rows_to(call: Call, array: Array, splits: Array | Sequence[int] | None) -> list[int]:
    """Returns how many rows each rank receives from this one."""
    ranks, function = len(call.ring.ranks), call.function
    if array.ndim == 0:
        raise program_error("E-hvd-array", f"hvd.{function} cuts along the first axis, but this array has no axes")
    if splits is None:
        if array.shape[0] % ranks != 0:
            raise program_error(
                "E-hvd-splits",
                f"hvd.{function}: {array.shape[0]} rows cannot be divided evenly among {ranks} ranks; give splits",
            )
        return [array.shape[0] // ranks] * ranks
    given = numpy.asarray(splits)
    if given.shape != (ranks,) or given.dtype.kind not in "iu" or (given < 0).any() or given.sum() > array.shape[0]:
        raise program_error(
            "E-hvd-splits",
            f"hvd.{function}: splits is {given.tolist()}; it must have an integer of at least 0 for each of the "
            f"{ranks} ranks, of which the sum is at most the number of rows, {array.shape[0]}",
        )
    return [int(rows) for rows in given]


def _exchange(call: Call, tensor: Array | float, splits: Array | Sequence[int] | None) -> Operation:
    """Starts an alltoall; its result is (array, received rows)."""
    array = copied(tensor)
    type_of(call.function, array)
    sent = _rows_to(call, array, splits)
    ranks, me = len(call.ring.ranks), call.ring.position
    said = exchange_shapes(call, array, sent)
    received = [row[array.ndim + me] for row in said]
    out = numpy.empty((sum(received),) + array.shape[1:], array.dtype)
    begins, ends = numpy.cumsum([0] + sent), numpy.cumsum([0] + received)

    def bytes_of(whole: Array, at: Array, rank: int) -> Array:
        return whole[at[rank] : at[rank + 1]].reshape(-1).view("uint8")

    out[ends[me] : ends[me + 1]] = array[begins[me] : begins[me + 1]]
    pending = []
    for step in range(1, ranks):
        to, source = (me + step) % ranks, (me - step) % ranks
        pending.append(call.send_recv(bytes_of(array, begins, to), to, bytes_of(out, ends, source), source))
    return Operation(call, pending, lambda: (out, numpy.array(received, "int32")))


@with_texts(ARRAYS)
def alltoall_async(
    tensor: Array,
    splits: Array | Sequence[int] | None = None,
    name: str | None = None,
    process_set: ProcessSet = global_process_set,
) -> int:
    """Starts an alltoall, after it has exchanged the numbers of rows.

    Args:
        tensor (numpy.ndarray): as for `alltoall`.
        splits (numpy.ndarray | list[int] | None): as for `alltoall`.
        {name_and_set}

    Returns:
        int: a handle for `synchronize`, which returns (rows, numbers of rows received from each rank).

    {example}
        rows, counts = hvd.synchronize(hvd.alltoall_async(np.arange(2. * hvd.size())))
    """
    return keep(_exchange(Call("alltoall_async", name, process_set), tensor, splits))


@with_texts(ARRAYS)
def alltoall(
    tensor: Array,
    splits: Array | Sequence[int] | None = None,
    name: str | None = None,
    process_set: ProcessSet = global_process_set,
) -> Array | tuple[Array, Array]:
    """Sends a part of an array's rows to each rank, and returns the rows that all ranks have sent to this one.

    Args:
        tensor (numpy.ndarray): shape [rows, ...]; type and further extents are equal on all ranks.
        splits (numpy.ndarray | list[int] | None): the number of rows for each rank, in the order of the ranks; rows
            beyond their sum are not sent. None: the same number for each.
        {name_and_set}

    Returns:
        numpy.ndarray | tuple: the received rows, in the order of the ranks that sent them; with `splits` (the rows, the
        number of rows received from each rank).

    Raises:
        penstock.ProgramError: `splits` does not fit (E-hvd-splits), or types or extents differ (E-hvd-allgather).

    {example}
        rows = hvd.alltoall(np.arange(2. * hvd.size()))
    """
    rows, counts = _exchange(Call("alltoall", name, process_set), tensor, splits).wait()
    return rows if splits is None else (rows, counts)


def scatter_reduced(
    call: Call, tensor: Array, op: Reduction, prescale_factor: float, postscale_factor: float
) -> Operation:
    """Starts a reducescatter of an array."""
    function, array = call.function, copied(tensor)
    op = reduction_of(function, None, op)
    before = factor_of(function, "prescale_factor", prescale_factor)
    after = factor_of(function, "postscale_factor", postscale_factor)
    check_mean(function, op, array)
    if op is Adasum:
        raise program_error(
            "E-hvd-op", f"hvd.{function}: op is hvd.Adasum; a reducescatter knows Average, Sum, Min, Max and Product"
        )
    if array.ndim == 0:
        raise program_error("E-hvd-array", f"hvd.{function} cuts along the first axis, but this array has no axes")
    scale(array, before)
    # The first ranks get one row more if the rows cannot be divided evenly; the others exchange a row of zeros.
    ranks, me = len(call.ring.ranks), call.ring.position
    each, more = divmod(array.shape[0], ranks)
    if more:
        cut = more * (each + 1)
        padded = numpy.zeros((ranks, each + 1) + array.shape[1:], array.dtype)
        padded[:more] = array[:cut].reshape((more, each + 1) + array.shape[1:])
        padded[more:, :each] = array[cut:].reshape((ranks - more, each) + array.shape[1:])
        array = padded
    out = numpy.empty((each + (more > 0),) + tensor_extents(tensor), array.dtype)
    rows = each + (me < more)
    return Operation(call, [call.reduce_scatter(array, out, op)], lambda: scale(out[:rows], after))


def tensor_extents(tensor: Array) -> tuple[Any, ...] | tuple[int]:
    return numpy.shape(tensor)[1:]


@with_texts(ARRAYS)
def reducescatter_async(
    tensor: Array,
    name: str | None = None,
    op: Reduction = Average,
    process_set: ProcessSet = global_process_set,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
) -> int:
    """Starts a reducescatter.

    Args:
        tensor (numpy.ndarray): as for `reducescatter`.
        {name}
        {op_of_scatter}
        {process_set}
        {factors}

    {handle}

    {example}
        rows = hvd.synchronize(hvd.reducescatter_async(np.ones((4, 2)), op=hvd.Sum))
    """
    call = Call("reducescatter_async", name, process_set)
    return keep(scatter_reduced(call, tensor, op, prescale_factor, postscale_factor))


@with_texts(ARRAYS)
def reducescatter(
    tensor: Array,
    name: str | None = None,
    compression: Method = Compression.none,
    op: Reduction = Average,
    process_set: ProcessSet = global_process_set,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
) -> Array:
    """Reduces an array over all ranks, element by element, and returns this rank's part of the rows.

    Args:
        tensor (numpy.ndarray): shape [rows, ...], the same on all ranks; types as for `allreduce`. If the rows cannot
            be divided evenly among the ranks, the first ranks get one more.
        {name}
        {compression}
        op (object): Average (floats only; the default), Sum, Min, Max or Product.
        {process_set}
        {factors}

    Returns:
        numpy.ndarray: the reduced rows of this rank.

    Raises:
        penstock.ProgramError: the array or the reduction is not supported, or another rank runs another operation
            (E-collective-mismatch).

    {example}
        rows = hvd.reducescatter(np.ones((4, 2)), op=hvd.Sum)
    """
    call = Call("reducescatter", name, process_set)
    exchanged, context = compression.compress(numpy.asarray(tensor))
    return compression.decompress(
        scatter_reduced(call, exchanged, op, prescale_factor, postscale_factor).wait(), context
    )
