"""Handles of operations in progress: poll and synchronize."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock._src.base.doc_texts import with_texts
from penstock._src.hvd.operations import kept, take
from penstock._src.hvd.texts import ARRAYS

if TYPE_CHECKING:
    from penstock._src.ir.typing import Array


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
