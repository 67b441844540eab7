"""alltoall: sends a part of an array's rows to each rank."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy

from penstock._src.base.doc_texts import with_texts
from penstock._src.base.errors import program_error
from penstock._src.hvd.allgather import exchange_shapes
from penstock._src.hvd.operations import Call, Operation, copied, keep, type_of
from penstock._src.hvd.process_sets import global_process_set
from penstock._src.hvd.tensors import takes_tensors
from penstock._src.hvd.texts import ARRAYS

if TYPE_CHECKING:
    from collections.abc import Sequence

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


@takes_tensors
@with_texts(ARRAYS)
def alltoall_async(
    tensor: Array,
    splits: Array | Sequence[int] | None = None,
    name: str | None = None,
    process_set: ProcessSet = global_process_set,
) -> int:
    """Starts an alltoall, after it has exchanged the numbers of rows.

    Args:
        tensor (numpy.ndarray | torch.Tensor): as for `alltoall`.
        splits (numpy.ndarray | list[int] | None): as for `alltoall`.
        {name_and_set}

    Returns:
        int: a handle for `synchronize`, which returns (rows, numbers of rows received from each rank).

    {example}
        rows, counts = hvd.synchronize(hvd.alltoall_async(np.arange(2. * hvd.size())))
    """
    return keep(_exchange(Call("alltoall_async", name, process_set), tensor, splits))


@takes_tensors
@with_texts(ARRAYS)
def alltoall(
    tensor: Array,
    splits: Array | Sequence[int] | None = None,
    name: str | None = None,
    process_set: ProcessSet = global_process_set,
) -> Array | tuple[Array, Array]:
    """Sends a part of an array's rows to each rank, and returns the rows that all ranks have sent to this one.

    Args:
        tensor (numpy.ndarray | torch.Tensor): shape [rows, ...]; type and further extents are equal on all ranks.
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
