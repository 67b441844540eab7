"""Operations of ranks on NumPy arrays: allreduce, allgather, broadcast, barrier; handles of asynchronous ones."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy

from penstock._src.base.doc_texts import with_texts
from penstock._src.base.errors import program_error
from penstock._src.hvd.compression import Compression
from penstock._src.hvd.operations import (
    TYPES,
    Adasum,
    Call,
    Operation,
    check_mean,
    copied,
    keep,
    kept,
    own,
    scale,
    take,
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


_EXTENTS_MAX = 64  # of an array in numpy


@with_texts(ARRAYS)
def poll(handle: int) -> bool:
    """Tells whether an operation has ended, so that `synchronize` returns at once.

    Args:
        handle (int): the result of a function with _async.

    Returns:
        bool: whether it has ended.

    Raises:
        penstock.ProgramError: there is no such operation, or it was synchronized already (E-hvd-handle).

    {example}
        handle = hvd.allreduce_async(np.ones(2, 'float32'))
        hvd.poll(handle)
        hvd.synchronize(handle)
    """
    return kept("poll", handle).done()


@with_texts(ARRAYS)
def synchronize(handle: int) -> Array | list[Array] | tuple[Array, Array]:
    """Waits for an operation that a function with _async started.

    Args:
        handle (int): the result of that function.

    Returns:
        numpy.ndarray | list[numpy.ndarray] | tuple: the result of the function without _async; of alltoall_async always
        the rows and the numbers of rows.

    Raises:
        penstock.ProgramError: there is no such operation, or it was synchronized already (E-hvd-handle).
        penstock.PeerError: another rank is gone.

    {example}
        total = hvd.synchronize(hvd.allreduce_async(np.ones(2, 'float32'), op=hvd.Sum))
    """
    return take("synchronize", handle).wait()


def _reduce(
    call: Call, array: Array, average: bool | None, op: Any, prescale_factor: float | str, postscale_factor: float
) -> Operation:
    """Starts the reduction of `array` in place."""
    reduction, before, after = call.how_to_reduce(average, op, prescale_factor, postscale_factor)
    check_mean(call.function, reduction, array)
    scale(array, before)
    pending = []
    if reduction is Adasum:
        call.adasum(array)
    else:
        pending.append(call.all_reduce(array, reduction))
    return Operation(call, pending, lambda: scale(array, after))


@with_texts(ARRAYS)
def allreduce_async(
    tensor: Array,
    average: bool | None = None,
    name: str | None = None,
    op: Reduction | None = None,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
    process_set: ProcessSet = global_process_set,
) -> int:
    """Starts an allreduce.

    Args:
        tensor (numpy.ndarray): as for `allreduce`.
        {average_or_sum}
        {name}
        op (object): as for `allreduce`; with Adasum the function returns after the operation has ended.
        {factors}
        {process_set}

    {handle}

    {example}
        handle = hvd.allreduce_async(np.ones(2, 'float32'))
        mean = hvd.synchronize(handle)
    """
    call = Call("allreduce_async", name, process_set)
    return keep(_reduce(call, copied(tensor), average, op, prescale_factor, postscale_factor))


@with_texts(ARRAYS)
def allreduce_async_(
    tensor: Array,
    average: bool | None = None,
    name: str | None = None,
    op: Reduction | None = None,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
    process_set: ProcessSet = global_process_set,
) -> int:
    """Starts an allreduce in place. Do not use the array before `synchronize`.

    Args:
        {own_tensor}
        {reduction}

    {handle}

    {example}
        array = np.ones(2, 'float32')
        hvd.synchronize(hvd.allreduce_async_(array))
    """
    call = Call("allreduce_async_", name, process_set)
    return keep(_reduce(call, own("allreduce_async_", tensor), average, op, prescale_factor, postscale_factor))


@with_texts(ARRAYS)
def allreduce(
    tensor: Array,
    average: bool | None = None,
    name: str | None = None,
    compression: Method = Compression.none,
    op: Reduction | None = None,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
    process_set: ProcessSet = global_process_set,
) -> Array:
    """Reduces an array over all ranks, element by element.

    Cost per rank, for S bytes and P ranks: 2 S (P - 1) / P bytes read and written on one host, or sent over TCP; S log2
    P for Adasum.

    Args:
        tensor (numpy.ndarray): of the same shape and type on all ranks: float16, float32, float64, int8, int32, int64
            or uint8.
        {average_or_sum}
        {name}
        {compression}
        op (object): Average (floats only; the default), Sum, Min, Max, Product, or Adasum, which needs 2, 4, 8, ...
            ranks.
        {factors}
        {process_set}

    Returns:
        numpy.ndarray: a new array.

    Raises:
        penstock.ProgramError: the array or the reduction is not supported, or another rank runs another operation
            (E-collective-mismatch).
        penstock.PeerError: another rank is gone.

    {example}
        mean = hvd.allreduce(np.full(2, hvd.rank(), 'float32'))
    """
    call = Call("allreduce", name, process_set)
    exchanged, context = compression.compress(numpy.asarray(tensor))
    reduced = _reduce(call, copied(exchanged), average, op, prescale_factor, postscale_factor).wait()
    return compression.decompress(reduced, context)


@with_texts(ARRAYS)
def allreduce_(
    tensor: Array,
    average: bool | None = None,
    name: str | None = None,
    op: Reduction | None = None,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
    process_set: ProcessSet = global_process_set,
) -> Array:
    """Reduces an array over all ranks in its own memory.

    Args:
        {own_tensor}
        {reduction}

    Returns:
        numpy.ndarray: `tensor`.

    {example}
        array = hvd.allreduce_(np.ones(2, 'float32'), op=hvd.Sum)
    """
    call = Call("allreduce_", name, process_set)
    array: Array = _reduce(call, own("allreduce_", tensor), average, op, prescale_factor, postscale_factor).wait()
    return array


def gather(call: Call, tensor: Array | float) -> Operation:
    """Starts the allgather of an array, after an exchange of the shapes."""
    function, array = call.function, copied(tensor)
    if array.ndim == 0:
        raise program_error(
            "E-hvd-array", f"hvd.{function} concatenates along the first axis, but this array has no axes"
        )
    shapes = [tuple(row[: array.ndim]) for row in exchange_shapes(call, array)]
    counts = [int(numpy.prod(shape, dtype="int64")) for shape in shapes]
    out = numpy.empty((sum(shape[0] for shape in shapes),) + array.shape[1:], array.dtype)
    return Operation(call, [call.all_gather(array, out, counts)], lambda: out)


def exchange_shapes(call: Call, array: Array, more: Sequence[int] = ()) -> list[list[int]]:
    """Returns, for each rank of the ring, a list of its array's extents and `more` numbers.

    Waits for all ranks. Types and all extents but the first must be equal.
    """
    ranks = call.ring.ranks
    mine = numpy.full(2 + _EXTENTS_MAX + len(more), 0, "int64")
    mine[: 2 + array.ndim] = (list(TYPES).index(array.dtype.name), array.ndim) + array.shape
    mine[2 + _EXTENTS_MAX :] = more
    everyone = numpy.empty((len(ranks), len(mine)), "int64")
    call.all_gather(mine, everyone, [len(mine)] * len(ranks)).wait()
    names, rows = list(TYPES), everyone.tolist()
    said = [(row[0], row[2 : 2 + row[1]]) for row in rows]
    for rank, (kind, extents) in zip(ranks, said):
        if (kind, extents[1:]) != (said[0][0], said[0][1][1:]) or len(extents) != len(said[0][1]):
            raise program_error(
                "E-hvd-allgather",
                f"hvd.{call.function.replace('_async', '')}: rank {ranks[0]} gathers "
                f"{names[said[0][0]]}{said[0][1]}, rank {rank} {names[kind]}{extents}; only the first extents may "
                f"differ ({call.label})",
            )
    return [extents + row[2 + _EXTENTS_MAX :] for row, (_, extents) in zip(rows, said)]


@with_texts(ARRAYS)
def allgather_async(tensor: Array, name: str | None = None, process_set: ProcessSet = global_process_set) -> int:
    """Starts an allgather, after it has exchanged the shapes of all ranks.

    Args:
        tensor (numpy.ndarray): as for `allgather`.
        {name_and_set}

    {handle}

    {example}
        rows = hvd.synchronize(hvd.allgather_async(np.ones((1, 2))))
    """
    return keep(gather(Call("allgather_async", name, process_set), tensor))


@with_texts(ARRAYS)
def allgather(tensor: Array, name: str | None = None, process_set: ProcessSet = global_process_set) -> Array:
    """Concatenates the rows of all ranks' arrays, in the order of the ranks.

    Args:
        tensor (numpy.ndarray): shape [rows, ...]; the number of rows may differ between ranks and may be 0; type and
            further extents must be equal.
        {name_and_set}

    Returns:
        numpy.ndarray: shape [rows of all ranks, ...].

    Raises:
        penstock.ProgramError: types or further extents differ (E-hvd-allgather); all ranks raise it.

    {example}
        rows = hvd.allgather(np.full((1, 2), hvd.rank()))
    """
    array: Array = gather(Call("allgather", name, process_set), tensor).wait()
    return array


def _give(call: Call, array: Array, root_rank: int) -> Operation:
    """Starts the broadcast of `array` in place."""
    root = call.ring.position_of(call.function, root_rank)
    return Operation(call, [call.broadcast(array, root)], lambda: array)


@with_texts(ARRAYS)
def broadcast_async(
    tensor: Array, root_rank: int, name: str | None = None, process_set: ProcessSet = global_process_set
) -> int:
    """Starts a broadcast.

    Args:
        tensor (numpy.ndarray): as for `broadcast`.
        {from_root}

    {handle}

    {example}
        array = hvd.synchronize(hvd.broadcast_async(np.ones(2), root_rank=0))
    """
    return keep(_give(Call("broadcast_async", name, process_set), copied(tensor), root_rank))


@with_texts(ARRAYS)
def broadcast_async_(
    tensor: Array, root_rank: int, name: str | None = None, process_set: ProcessSet = global_process_set
) -> int:
    """Starts a broadcast in place. Do not use the array before `synchronize`.

    Args:
        {own_tensor}
        {from_root}

    {handle}

    {example}
        array = np.ones(2)
        hvd.synchronize(hvd.broadcast_async_(array, root_rank=0))
    """
    return keep(_give(Call("broadcast_async_", name, process_set), own("broadcast_async_", tensor), root_rank))


@with_texts(ARRAYS)
def broadcast(
    tensor: Array, root_rank: int, name: str | None = None, process_set: ProcessSet = global_process_set
) -> Array:
    """Returns the array of one rank on all ranks.

    Args:
        tensor (numpy.ndarray): of the same shape and type on all ranks.
        {from_root}

    Returns:
        numpy.ndarray: a new array.

    Raises:
        penstock.ProgramError: there is no such rank (E-hvd-root).

    {example}
        array = hvd.broadcast(np.ones(2), root_rank=0)
    """
    array: Array = _give(Call("broadcast", name, process_set), copied(tensor), root_rank).wait()
    return array


@with_texts(ARRAYS)
def broadcast_(
    tensor: Array, root_rank: int, name: str | None = None, process_set: ProcessSet = global_process_set
) -> Array:
    """Overwrites an array with that of one rank.

    Args:
        {own_tensor}
        {from_root}

    Returns:
        numpy.ndarray: `tensor`.

    {example}
        array = hvd.broadcast_(np.ones(2), root_rank=0)
    """
    array: Array = _give(Call("broadcast_", name, process_set), own("broadcast_", tensor), root_rank).wait()
    return array


@with_texts(ARRAYS)
def barrier(process_set: ProcessSet = global_process_set) -> None:
    """Waits until all ranks have called it.

    Args:
        {process_set}

    {example}
        hvd.barrier()
    """
    Call("barrier", None, process_set).barrier().wait()
