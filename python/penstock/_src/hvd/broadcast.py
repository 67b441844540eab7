"""broadcast: gives all ranks the array of one of them. barrier: waits for all ranks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock._src.base.doc_texts import with_texts
from penstock._src.hvd.operations import Call, Operation, copied, keep, own
from penstock._src.hvd.process_sets import global_process_set
from penstock._src.hvd.tensors import takes_tensors
from penstock._src.hvd.texts import ARRAYS

if TYPE_CHECKING:
    from penstock._src.hvd.process_sets import ProcessSet
    from penstock._src.ir.typing import Array


def _give(call: Call, array: Array, root_rank: int) -> Operation:
    """Starts the broadcast of `array` in place."""
    root = call.ring.position_of(call.function, root_rank)
    return Operation(call, [call.broadcast(array, root)], lambda: array)


@takes_tensors
@with_texts(ARRAYS)
def broadcast_async(
    tensor: Array, root_rank: int, name: str | None = None, process_set: ProcessSet = global_process_set
) -> int:
    """Starts a broadcast.

    Args:
        tensor (numpy.ndarray | torch.Tensor): as for `broadcast`.
        {from_root}

    {handle}

    {example}
        array = hvd.synchronize(hvd.broadcast_async(np.ones(2), root_rank=0))
    """
    return keep(_give(Call("broadcast_async", name, process_set), copied(tensor), root_rank))


@takes_tensors
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


@takes_tensors
@with_texts(ARRAYS)
def broadcast(
    tensor: Array, root_rank: int, name: str | None = None, process_set: ProcessSet = global_process_set
) -> Array:
    """Returns the array of one rank on all ranks.

    Args:
        tensor (numpy.ndarray | torch.Tensor): of the same shape and type on all ranks.
        {from_root}

    Returns:
        numpy.ndarray | torch.Tensor: a new one, as `tensor`.

    Raises:
        penstock.ProgramError: there is no such rank (E-hvd-root).

    {example}
        array = hvd.broadcast(np.ones(2), root_rank=0)
    """
    array: Array = _give(Call("broadcast", name, process_set), copied(tensor), root_rank).wait()
    return array


@takes_tensors
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
