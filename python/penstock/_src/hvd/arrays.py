"""Operations of ranks on NumPy arrays: allreduce, allgather, broadcast, barrier; handles of asynchronous ones."""

import numpy

from penstock._src.base.errors import program_error
from penstock._src.hvd.compression import Compression
from penstock._src.hvd.operations import (
    TYPES,
    Adasum,
    Call,
    Operation,
    check_mean,
    copied,
    factor_of,
    keep,
    kept,
    own,
    reduction_of,
    scale,
    take,
)
from penstock._src.hvd.process_sets import global_process_set

_EXTENTS_MAX = 64  # of an array in numpy


def poll(handle):
    """Tells whether an operation has ended, so that `synchronize` returns at once.

    Args:
        handle (int): the result of a function with _async.

    Returns:
        bool: whether it has ended.

    Raises:
        penstock.ProgramError: there is no such operation, or it was synchronized already (E-hvd-handle).

    Example:
        import penstock.hvd as hvd
        hvd.init()
        handle = hvd.allreduce_async(np.ones(2, 'float32'))
        hvd.poll(handle)
        hvd.synchronize(handle)
    """
    return kept("poll", handle).done()


def synchronize(handle):
    """Waits for an operation that a function with _async started.

    Args:
        handle (int): the result of that function.

    Returns:
        numpy.ndarray | list[numpy.ndarray] | tuple: the result of the function without _async; of alltoall_async always
        the rows and the numbers of rows.

    Raises:
        penstock.ProgramError: there is no such operation, or it was synchronized already (E-hvd-handle).
        penstock.PeerError: another rank is gone.

    Example:
        import penstock.hvd as hvd
        hvd.init()
        total = hvd.synchronize(hvd.allreduce_async(np.ones(2, 'float32'), op=hvd.Sum))
    """
    return take("synchronize", handle).wait()


def _reduce(call, array, average, op, prescale_factor, postscale_factor):
    """Starts the reduction of `array` in place."""
    function = call.function
    op = reduction_of(function, average, op)
    before = factor_of(function, "prescale_factor", prescale_factor)
    after = factor_of(function, "postscale_factor", postscale_factor)
    check_mean(function, op, array)
    if op is Adasum and call.ring.number != 0:
        raise NotImplementedError(f"hvd.{function}: Adasum works on all ranks of the job only, not on a process set")
    scale(array, before)
    pending = call.adasum(array) if op is Adasum else call.all_reduce(array, op)
    return Operation(call, [pending], lambda: scale(array, after))


def allreduce_async(
    tensor, average=None, name=None, op=None, prescale_factor=1.0, postscale_factor=1.0, process_set=global_process_set
):
    """Starts an allreduce.

    Args:
        tensor (numpy.ndarray): as for `allreduce`.
        average (bool | None): the older spelling of `op`: True is Average, False is Sum.
        name (str | None): appears in errors; must be equal on all ranks.
        op (object): as for `allreduce`; with Adasum the function returns after the operation has ended.
        prescale_factor (float): multiplies the array before the reduction.
        postscale_factor (float): multiplies the result.
        process_set (ProcessSet): the ranks that take part.

    Returns:
        int: a handle for `synchronize`.

    Example:
        import penstock.hvd as hvd
        hvd.init()
        handle = hvd.allreduce_async(np.ones(2, 'float32'))
        mean = hvd.synchronize(handle)
    """
    call = Call("allreduce_async", name, process_set)
    return keep(_reduce(call, copied(tensor), average, op, prescale_factor, postscale_factor))


def allreduce_async_(
    tensor, average=None, name=None, op=None, prescale_factor=1.0, postscale_factor=1.0, process_set=global_process_set
):
    """Starts an allreduce in place. Do not use the array before `synchronize`.

    Args:
        tensor (numpy.ndarray): C-contiguous and writeable.
        average (bool | None): the older spelling of `op`.
        name (str | None): appears in errors; must be equal on all ranks.
        op (object): as for `allreduce`.
        prescale_factor (float): multiplies the array before the reduction.
        postscale_factor (float): multiplies the result.
        process_set (ProcessSet): the ranks that take part.

    Returns:
        int: a handle for `synchronize`.

    Example:
        import penstock.hvd as hvd
        hvd.init()
        array = np.ones(2, 'float32')
        hvd.synchronize(hvd.allreduce_async_(array))
    """
    call = Call("allreduce_async_", name, process_set)
    return keep(_reduce(call, own("allreduce_async_", tensor), average, op, prescale_factor, postscale_factor))


def allreduce(
    tensor,
    average=None,
    name=None,
    compression=Compression.none,
    op=None,
    prescale_factor=1.0,
    postscale_factor=1.0,
    process_set=global_process_set,
):
    """Reduces an array over all ranks, element by element.

    Cost per rank, for S bytes and P ranks: 2 S (P - 1) / P bytes read and written on one host, or sent over TCP; S log2
    P for Adasum.

    Args:
        tensor (numpy.ndarray): of the same shape and type on all ranks: float16, float32, float64, int8, int32, int64
            or uint8.
        average (bool | None): the older spelling of `op`: True is Average, False is Sum.
        name (str | None): appears in errors; must be equal on all ranks.
        compression (Compression): Compression.fp16 exchanges floats in half precision.
        op (object): Average (floats only; the default), Sum, Min, Max, Product, or Adasum, which needs 2, 4, 8, ...
            ranks.
        prescale_factor (float): multiplies the array before the reduction.
        postscale_factor (float): multiplies the result.
        process_set (ProcessSet): the ranks that take part.

    Returns:
        numpy.ndarray: a new array.

    Raises:
        penstock.ProgramError: the array or the reduction is not supported, or another rank runs another operation
            (E-collective-mismatch).
        penstock.PeerError: another rank is gone.

    Example:
        import penstock.hvd as hvd
        hvd.init()
        mean = hvd.allreduce(np.full(2, hvd.rank(), 'float32'))
    """
    call = Call("allreduce", name, process_set)
    exchanged, context = compression.compress(numpy.asarray(tensor))
    reduced = _reduce(call, copied(exchanged), average, op, prescale_factor, postscale_factor).wait()
    return compression.decompress(reduced, context)


def allreduce_(
    tensor, average=None, name=None, op=None, prescale_factor=1.0, postscale_factor=1.0, process_set=global_process_set
):
    """Reduces an array over all ranks in its own memory.

    Args:
        tensor (numpy.ndarray): C-contiguous and writeable.
        average (bool | None): the older spelling of `op`.
        name (str | None): appears in errors; must be equal on all ranks.
        op (object): as for `allreduce`.
        prescale_factor (float): multiplies the array before the reduction.
        postscale_factor (float): multiplies the result.
        process_set (ProcessSet): the ranks that take part.

    Returns:
        numpy.ndarray: `tensor`.

    Example:
        import penstock.hvd as hvd
        hvd.init()
        array = hvd.allreduce_(np.ones(2, 'float32'), op=hvd.Sum)
    """
    call = Call("allreduce_", name, process_set)
    return _reduce(call, own("allreduce_", tensor), average, op, prescale_factor, postscale_factor).wait()


def gather(call, tensor):
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


def exchange_shapes(call, array, more=()):
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


def allgather_async(tensor, name=None, process_set=global_process_set):
    """Starts an allgather, after it has exchanged the shapes of all ranks.

    Args:
        tensor (numpy.ndarray): as for `allgather`.
        name (str | None): appears in errors; must be equal on all ranks.
        process_set (ProcessSet): the ranks that take part.

    Returns:
        int: a handle for `synchronize`.

    Example:
        import penstock.hvd as hvd
        hvd.init()
        rows = hvd.synchronize(hvd.allgather_async(np.ones((1, 2))))
    """
    return keep(gather(Call("allgather_async", name, process_set), tensor))


def allgather(tensor, name=None, process_set=global_process_set):
    """Concatenates the rows of all ranks' arrays, in the order of the ranks.

    Args:
        tensor (numpy.ndarray): shape [rows, ...]; the number of rows may differ between ranks and may be 0; type and
            further extents must be equal.
        name (str | None): appears in errors; must be equal on all ranks.
        process_set (ProcessSet): the ranks that take part.

    Returns:
        numpy.ndarray: shape [rows of all ranks, ...].

    Raises:
        penstock.ProgramError: types or further extents differ (E-hvd-allgather); all ranks raise it.

    Example:
        import penstock.hvd as hvd
        hvd.init()
        rows = hvd.allgather(np.full((1, 2), hvd.rank()))
    """
    return gather(Call("allgather", name, process_set), tensor).wait()


def _give(call, array, root_rank):
    """Starts the broadcast of `array` in place."""
    root = call.ring.position_of(call.function, root_rank)
    return Operation(call, [call.broadcast(array, root)], lambda: array)


def broadcast_async(tensor, root_rank, name=None, process_set=global_process_set):
    """Starts a broadcast.

    Args:
        tensor (numpy.ndarray): as for `broadcast`.
        root_rank (int): the rank, of the job, whose array all ranks receive.
        name (str | None): appears in errors; must be equal on all ranks.
        process_set (ProcessSet): the ranks that take part.

    Returns:
        int: a handle for `synchronize`.

    Example:
        import penstock.hvd as hvd
        hvd.init()
        array = hvd.synchronize(hvd.broadcast_async(np.ones(2), root_rank=0))
    """
    return keep(_give(Call("broadcast_async", name, process_set), copied(tensor), root_rank))


def broadcast_async_(tensor, root_rank, name=None, process_set=global_process_set):
    """Starts a broadcast in place. Do not use the array before `synchronize`.

    Args:
        tensor (numpy.ndarray): C-contiguous and writeable.
        root_rank (int): the rank, of the job, whose array all ranks receive.
        name (str | None): appears in errors; must be equal on all ranks.
        process_set (ProcessSet): the ranks that take part.

    Returns:
        int: a handle for `synchronize`.

    Example:
        import penstock.hvd as hvd
        hvd.init()
        array = np.ones(2)
        hvd.synchronize(hvd.broadcast_async_(array, root_rank=0))
    """
    return keep(_give(Call("broadcast_async_", name, process_set), own("broadcast_async_", tensor), root_rank))


def broadcast(tensor, root_rank, name=None, process_set=global_process_set):
    """Returns the array of one rank on all ranks.

    Args:
        tensor (numpy.ndarray): of the same shape and type on all ranks.
        root_rank (int): the rank, of the job, whose array all ranks receive.
        name (str | None): appears in errors; must be equal on all ranks.
        process_set (ProcessSet): the ranks that take part.

    Returns:
        numpy.ndarray: a new array.

    Raises:
        penstock.ProgramError: there is no such rank (E-hvd-root).

    Example:
        import penstock.hvd as hvd
        hvd.init()
        array = hvd.broadcast(np.ones(2), root_rank=0)
    """
    return _give(Call("broadcast", name, process_set), copied(tensor), root_rank).wait()


def broadcast_(tensor, root_rank, name=None, process_set=global_process_set):
    """Overwrites an array with that of one rank.

    Args:
        tensor (numpy.ndarray): C-contiguous and writeable.
        root_rank (int): the rank, of the job, whose array all ranks receive.
        name (str | None): appears in errors; must be equal on all ranks.
        process_set (ProcessSet): the ranks that take part.

    Returns:
        numpy.ndarray: `tensor`.

    Example:
        import penstock.hvd as hvd
        hvd.init()
        array = hvd.broadcast_(np.ones(2), root_rank=0)
    """
    return _give(Call("broadcast_", name, process_set), own("broadcast_", tensor), root_rank).wait()


def barrier(process_set=global_process_set):
    """Waits until all ranks have called it.

    Args:
        process_set (ProcessSet): the ranks that take part.

    Example:
        import penstock.hvd as hvd
        hvd.init()
        hvd.barrier()
    """
    Call("barrier", None, process_set).barrier().wait()
