"""allgather: concatenates the rows of all ranks; of one array, or of several in one call."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy

from penstock._src.base.doc_texts import with_texts
from penstock._src.base.errors import program_error
from penstock._src.hvd.operations import TYPES, Call, Operation, Several, copied, keep, listed
from penstock._src.hvd.process_sets import global_process_set
from penstock._src.hvd.tensors import takes_tensors
from penstock._src.hvd.texts import ARRAYS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from penstock._src.hvd.process_sets import ProcessSet
    from penstock._src.ir.typing import Array


_EXTENTS_MAX = 64  # of an array in numpy


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


@takes_tensors
@with_texts(ARRAYS)
def allgather_async(tensor: Array, name: str | None = None, process_set: ProcessSet = global_process_set) -> int:
    """Starts an allgather, after it has exchanged the shapes of all ranks.

    Args:
        tensor (numpy.ndarray | torch.Tensor): as for `allgather`.
        {name_and_set}

    {handle}

    {example}
        rows = hvd.synchronize(hvd.allgather_async(np.ones((1, 2))))
    """
    return keep(gather(Call("allgather_async", name, process_set), tensor))


@takes_tensors
@with_texts(ARRAYS)
def allgather(tensor: Array, name: str | None = None, process_set: ProcessSet = global_process_set) -> Array:
    """Concatenates the rows of all ranks' arrays, in the order of the ranks.

    Args:
        tensor (numpy.ndarray | torch.Tensor): shape [rows, ...]; the number of rows may differ between ranks and
            may be 0; type and further extents must be equal.
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


@takes_tensors
@with_texts(ARRAYS)
def grouped_allgather_async(
    tensors: Sequence[Array], name: str | None = None, process_set: ProcessSet = global_process_set
) -> int:
    """Starts an allgather of several arrays.

    Args:
        tensors (list[numpy.ndarray | torch.Tensor]): each as for `allgather`; all ranks give the same number.
        {name_and_set}

    {handle_of_list}

    {example}
        rows, more = hvd.synchronize(hvd.grouped_allgather_async([np.ones((1, 2)), np.ones((1, 3))]))
    """
    call = Call("grouped_allgather_async", name, process_set)
    return keep(Several([gather(call, tensor) for tensor in listed(call.function, tensors)]))


@takes_tensors
@with_texts(ARRAYS)
def grouped_allgather(
    tensors: Sequence[Array], name: str | None = None, process_set: ProcessSet = global_process_set
) -> list[Array]:
    """Concatenates the rows of all ranks' arrays, for several arrays.

    Args:
        tensors (list[numpy.ndarray | torch.Tensor]): each as for `allgather`; all ranks give the same number.
        {name_and_set}

    Returns:
        list[numpy.ndarray]: new arrays.

    Raises:
        penstock.ProgramError: as `allgather`.

    {example}
        rows, more = hvd.grouped_allgather([np.ones((1, 2)), np.ones((1, 3))])
    """
    call = Call("grouped_allgather", name, process_set)
    return Several([gather(call, tensor) for tensor in listed(call.function, tensors)]).wait()
