"""Grouped operations: several arrays in one call. The reductions of arrays of one type are one operation."""

import numpy

from penstock._src.base.doc_texts import with_texts
from penstock._src.hvd.alltoall import scatter_reduced
from penstock._src.hvd.arrays import gather
from penstock._src.hvd.compression import Compression
from penstock._src.hvd.operations import Adasum, Average, Call, Operation, check_mean, copied, keep, listed, own, scale
from penstock._src.hvd.process_sets import global_process_set
from penstock._src.hvd.texts import ARRAYS


class _Several:
    """Operations of one call; their results are a list."""

    def __init__(self, operations):
        self._operations = operations

    def done(self):
        return all(one.done() for one in self._operations)

    def wait(self):
        return [one.wait() for one in self._operations]


def _reduce_all(call, arrays, average, op, prescale_factor, postscale_factor):
    """Starts the reductions of arrays in place."""
    op, before, after = call.how_to_reduce(average, op, prescale_factor, postscale_factor)
    for array in arrays:
        check_mean(call.function, op, array)
        scale(array, before)
    if op is Adasum:  # the lengths of vectors count, so arrays cannot be joined
        for array in arrays:
            call.adasum(array)
        return Operation(call, [], lambda: [scale(array, after) for array in arrays])
    by_type = {}
    for array in arrays:
        by_type.setdefault(array.dtype.name, []).append(array)
    joined = [
        (group, numpy.concatenate([array.reshape(-1) for array in group])) for _, group in sorted(by_type.items())
    ]
    pending = [call.all_reduce(flat, op) for _, flat in joined]

    def spread():
        for group, flat in joined:
            at = 0
            for array in group:
                array[...] = scale(flat[at : at + array.size], after).reshape(array.shape)
                at += array.size
        return arrays

    return Operation(call, pending, spread)


@with_texts(ARRAYS)
def grouped_allreduce_async(
    tensors, average=None, name=None, op=None, prescale_factor=1.0, postscale_factor=1.0, process_set=global_process_set
):
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
    tensors,
    average=None,
    name=None,
    compression=Compression.none,
    op=None,
    prescale_factor=1.0,
    postscale_factor=1.0,
    process_set=global_process_set,
):
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
    tensors, average=None, name=None, op=None, prescale_factor=1.0, postscale_factor=1.0, process_set=global_process_set
):
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
    tensors, average=None, name=None, op=None, prescale_factor=1.0, postscale_factor=1.0, process_set=global_process_set
):
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
    return _reduce_all(call, arrays, average, op, prescale_factor, postscale_factor).wait()


@with_texts(ARRAYS)
def grouped_allgather_async(tensors, name=None, process_set=global_process_set):
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
def grouped_allgather(tensors, name=None, process_set=global_process_set):
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
    tensors, name=None, op=Average, process_set=global_process_set, prescale_factor=1.0, postscale_factor=1.0
):
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
    tensors,
    name=None,
    compression=Compression.none,
    op=Average,
    process_set=global_process_set,
    prescale_factor=1.0,
    postscale_factor=1.0,
):
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
