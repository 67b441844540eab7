"""reducescatter: reduces arrays over all ranks, of which each has a part; one array, or several in one call."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy

from penstock._src.base.doc_texts import with_texts
from penstock._src.base.errors import program_error
from penstock._src.hvd.compression import Compression
from penstock._src.hvd.operations import (
    Adasum,
    Average,
    Call,
    Operation,
    Several,
    check_mean,
    copied,
    factor_of,
    keep,
    listed,
    reduction_of,
    scale,
)
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


@takes_tensors
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
        tensor (numpy.ndarray | torch.Tensor): as for `reducescatter`.
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


@takes_tensors
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
        tensor (numpy.ndarray | torch.Tensor): shape [rows, ...], the same on all ranks; types as for `allreduce`.
            If the rows cannot be divided evenly among the ranks, the first ranks get one more.
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


@takes_tensors
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
        tensors (list[numpy.ndarray | torch.Tensor]): each as for `reducescatter`; all ranks give the same number.
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
        Several(
            [
                scatter_reduced(call, tensor, op, prescale_factor, postscale_factor)
                for tensor in listed(call.function, tensors)
            ]
        )
    )


@takes_tensors
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
        tensors (list[numpy.ndarray | torch.Tensor]): each as for `reducescatter`; all ranks give the same number.
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
    operations = Several(
        [scatter_reduced(call, array, op, prescale_factor, postscale_factor) for array, _ in compressed]
    )
    return [compression.decompress(rows, context) for rows, (_, context) in zip(operations.wait(), compressed)]
