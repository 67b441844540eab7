"""allreduce: reduces arrays over all ranks, element by element; one array, or several in one call."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy

from penstock._src.base.doc_texts import with_texts
from penstock._src.hvd.compression import Compression
from penstock._src.hvd.operations import Adasum, Call, Operation, check_mean, copied, keep, listed, own, scale
from penstock._src.hvd.process_sets import global_process_set
from penstock._src.hvd.tensors import takes_tensors
from penstock._src.hvd.texts import ARRAYS

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from penstock._src.hvd.compression import Method
    from penstock._src.hvd.operations import Reduction
    from penstock._src.hvd.process_sets import ProcessSet
    from penstock._src.ir.typing import Array


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


@takes_tensors
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
        tensor (numpy.ndarray | torch.Tensor): as for `allreduce`.
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


@takes_tensors
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


@takes_tensors
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
        tensor (numpy.ndarray | torch.Tensor): of the same shape and type on all ranks: float16, float32, float64,
            int8, int32, int64 or uint8.
        {average_or_sum}
        {name}
        {compression}
        op (object): Average (floats only; the default), Sum, Min, Max, Product, or Adasum, which needs 2, 4, 8, ...
            ranks.
        {factors}
        {process_set}

    Returns:
        numpy.ndarray | torch.Tensor: a new one, as `tensor`.

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


@takes_tensors
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


def _reduce_all(
    call: Call,
    arrays: list[Array],
    average: bool | None,
    op: Reduction | None,
    prescale_factor: float,
    postscale_factor: float,
) -> Operation:
    """Starts the reductions of arrays in place."""
    reduction, before, after = call.how_to_reduce(average, op, prescale_factor, postscale_factor)
    for array in arrays:
        check_mean(call.function, reduction, array)
        scale(array, before)
    if reduction is Adasum:  # the lengths of vectors count, so arrays cannot be joined
        for array in arrays:
            call.adasum(array)
        return Operation(call, [], lambda: [scale(array, after) for array in arrays])
    by_type: dict[str, list[Array]] = {}
    for array in arrays:
        by_type.setdefault(array.dtype.name, []).append(array)
    joined = [
        (group, numpy.concatenate([array.reshape(-1) for array in group])) for _, group in sorted(by_type.items())
    ]
    pending = [call.all_reduce(flat, reduction) for _, flat in joined]

    def spread() -> list[Array]:
        for group, flat in joined:
            at = 0
            for array in group:
                array[...] = scale(flat[at : at + array.size], after).reshape(array.shape)
                at += array.size
        return arrays

    return Operation(call, pending, spread)


@takes_tensors
@with_texts(ARRAYS)
def grouped_allreduce_async(
    tensors: Sequence[Array],
    average: bool | None = None,
    name: str | None = None,
    op: Reduction | None = None,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
    process_set: ProcessSet = global_process_set,
) -> int:
    """Starts an allreduce of several arrays.

    Args:
        {each_as_allreduce}
        {reduction_of_all}

    {handle_of_list}

    {example}
        handle = hvd.grouped_allreduce_async([np.ones(2), np.ones(3)])
        two, three = hvd.synchronize(handle)
    """
    call = Call("grouped_allreduce_async", name, process_set)
    arrays = [copied(tensor) for tensor in listed(call.function, tensors)]
    return keep(_reduce_all(call, arrays, average, op, prescale_factor, postscale_factor))


@takes_tensors
@with_texts(ARRAYS)
def grouped_allreduce(
    tensors: Sequence[Array],
    average: bool | None = None,
    name: str | None = None,
    compression: Method = Compression.none,
    op: Reduction | None = None,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
    process_set: ProcessSet = global_process_set,
) -> list[Array]:
    """Reduces several arrays over all ranks; arrays of one type in one operation.

    Args:
        {each_as_allreduce}
        {average}
        {name}
        {compression}
        {op}
        {factors_of_all}
        {process_set}

    Returns:
        list[numpy.ndarray]: new arrays.

    Raises:
        penstock.ProgramError: as `allreduce`.

    {example}
        two, three = hvd.grouped_allreduce([np.ones(2), np.ones(3)], op=hvd.Sum)
    """
    call = Call("grouped_allreduce", name, process_set)
    compressed = [compression.compress(numpy.asarray(tensor)) for tensor in listed(call.function, tensors)]
    reduced = _reduce_all(
        call, [copied(array) for array, _ in compressed], average, op, prescale_factor, postscale_factor
    ).wait()
    return [compression.decompress(array, context) for array, (_, context) in zip(reduced, compressed)]


@takes_tensors
@with_texts(ARRAYS)
def grouped_allreduce_async_(
    tensors: Sequence[Array],
    average: bool | None = None,
    name: str | None = None,
    op: Reduction | None = None,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
    process_set: ProcessSet = global_process_set,
) -> int:
    """Starts an allreduce of several arrays in place. Do not use the arrays before `synchronize`.

    Args:
        {own_tensors}
        {reduction_of_all}

    Returns:
        int: a handle for `synchronize`, which returns `tensors`.

    {example}
        arrays = [np.ones(2), np.ones(3)]
        hvd.synchronize(hvd.grouped_allreduce_async_(arrays))
    """
    call = Call("grouped_allreduce_async_", name, process_set)
    arrays = [own(call.function, tensor) for tensor in listed(call.function, tensors)]
    return keep(_reduce_all(call, arrays, average, op, prescale_factor, postscale_factor))


@takes_tensors
@with_texts(ARRAYS)
def grouped_allreduce_(
    tensors: Sequence[Array],
    average: bool | None = None,
    name: str | None = None,
    op: Reduction | None = None,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
    process_set: ProcessSet = global_process_set,
) -> list[Array]:
    """Reduces several arrays over all ranks in their own memory.

    Args:
        {own_tensors}
        {reduction_of_all}

    Returns:
        list[numpy.ndarray]: `tensors`.

    {example}
        hvd.grouped_allreduce_([np.ones(2), np.ones(3)], op=hvd.Sum)
    """
    call = Call("grouped_allreduce_", name, process_set)
    arrays = [own(call.function, tensor) for tensor in listed(call.function, tensors)]
    reduced: list[Array] = _reduce_all(call, arrays, average, op, prescale_factor, postscale_factor).wait()
    return reduced
