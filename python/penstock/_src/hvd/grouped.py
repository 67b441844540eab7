"""Grouped operations: several arrays in one call. The reductions of arrays of one type are one operation."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy

from penstock._src.base.doc_texts import with_texts
from penstock._src.hvd.alltoall import scatter_reduced
from penstock._src.hvd.arrays import gather
from penstock._src.hvd.compression import Compression
from penstock._src.hvd.operations import Adasum, Average, Call, Operation, check_mean, copied, keep, listed, own, scale
from penstock._src.hvd.process_sets import global_process_set
from penstock._src.hvd.texts import ARRAYS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from penstock._src.hvd.compression import Method
    from penstock._src.hvd.operations import Reduction
    from penstock._src.hvd.process_sets import ProcessSet
    from penstock._src.ir.typing import Array


class _Several:
    """Operations of one call; their results are a list."""

    def __init__(self, operations: list[Operation]) -> None:
        self._operations = operations

    def done(self) -> bool:
        return all(one.done() for one in self._operations)

    def wait(self) -> list[Array]:
        return [one.wait() for one in self._operations]


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


@with_texts(ARRAYS)
def grouped_allgather_async(
    tensors: Sequence[Array], name: str | None = None, process_set: ProcessSet = global_process_set
) -> int:
    """Starts an allgather of several arrays.

    Args:
        tensors (list[numpy.ndarray]): each as for `allgather`; all ranks give the same number.
        {name_and_set}

    {handle_of_list}

    {example}
        rows, more = hvd.synchronize(hvd.grouped_allgather_async([np.ones((1, 2)), np.ones((1, 3))]))
    """
    call = Call("grouped_allgather_async", name, process_set)
    return keep(_Several([gather(call, tensor) for tensor in listed(call.function, tensors)]))


@with_texts(ARRAYS)
def grouped_allgather(
    tensors: Sequence[Array], name: str | None = None, process_set: ProcessSet = global_process_set
) -> list[Array]:
    """Concatenates the rows of all ranks' arrays, for several arrays.

    Args:
        tensors (list[numpy.ndarray]): each as for `allgather`; all ranks give the same number.
        {name_and_set}

    Returns:
        list[numpy.ndarray]: new arrays.

    Raises:
        penstock.ProgramError: as `allgather`.

    {example}
        rows, more = hvd.grouped_allgather([np.ones((1, 2)), np.ones((1, 3))])
    """
    call = Call("grouped_allgather", name, process_set)
    return _Several([gather(call, tensor) for tensor in listed(call.function, tensors)]).wait()


@with_texts(ARRAYS)
def grouped_reducescatter_async(
    tensors: Sequence[Array],
    name: str | None = None,
    op: Reduction = Average,
    process_set: ProcessSet = global_process_set,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
) -> int:
    """Starts a reducescatter of several arrays.

    Args:
        tensors (list[numpy.ndarray]): each as for `reducescatter`; all ranks give the same number.
        {name}
        {op_of_scatter}
        {process_set}
        {factors_of_all}

    {handle_of_list}

    {example}
        rows, more = hvd.synchronize(hvd.grouped_reducescatter_async([np.ones((4, 2)), np.ones(8)]))
    """
    call = Call("grouped_reducescatter_async", name, process_set)
    return keep(
        _Several(
            [
                scatter_reduced(call, tensor, op, prescale_factor, postscale_factor)
                for tensor in listed(call.function, tensors)
            ]
        )
    )


@with_texts(ARRAYS)
def grouped_reducescatter(
    tensors: Sequence[Array],
    name: str | None = None,
    compression: Method = Compression.none,
    op: Reduction = Average,
    process_set: ProcessSet = global_process_set,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
) -> list[Array]:
    """Reduces several arrays over all ranks and returns this rank's part of the rows of each.

    Args:
        tensors (list[numpy.ndarray]): each as for `reducescatter`; all ranks give the same number.
        {name}
        {compression}
        {op_of_scatter}
        {process_set}
        {factors_of_all}

    Returns:
        list[numpy.ndarray]: the reduced rows of this rank.

    Raises:
        penstock.ProgramError: as `reducescatter`.

    {example}
        rows, more = hvd.grouped_reducescatter([np.ones((4, 2)), np.ones(8)], op=hvd.Sum)
    """
    call = Call("grouped_reducescatter", name, process_set)
    compressed = [compression.compress(numpy.asarray(tensor)) for tensor in listed(call.function, tensors)]
    operations = _Several(
        [scatter_reduced(call, array, op, prescale_factor, postscale_factor) for array, _ in compressed]
    )
    return [compression.decompress(rows, context) for rows, (_, context) in zip(operations.wait(), compressed)]
