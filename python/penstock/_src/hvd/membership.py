"""init and shutdown: how this process joins the ranks of its job and leaves them."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from penstock import _penstock
from penstock._src.base.doc_texts import with_texts
from penstock._src.base.errors import not_built
from penstock._src.executor.process_end import watch_this_thread
from penstock._src.hvd import joining
from penstock._src.hvd import process_sets as _process_sets
from penstock._src.hvd.job import Job, is_initialized, set_job, size
from penstock._src.hvd.texts import ARRAYS

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Literal

    from penstock._src.hvd.process_sets import ProcessSet


_lock = threading.Lock()


@with_texts(ARRAYS)
def init(comm: None = None, process_sets: Sequence[ProcessSet] | Literal["dynamic"] | None = None) -> None:
    """Joins the job that the launcher's environment names, and waits for all ranks.

    It reads PADDLE_TRAINER_ENDPOINTS, and PADDLE_TRAINER_ID or PADDLE_CURRENT_ENDPOINT. Without them this process is
    a job of size 1. A second call does nothing.

    Args:
        comm (None): accepted for Horovod's scripts; ranks or a communicator of MPI are not supported.
        process_sets (list[ProcessSet] | str | None): process sets to add. "dynamic" has no effect: sets can always be
            added.

    Raises:
        NotImplementedError: `comm` names ranks or a communicator.
        penstock.ProgramError: the environment contradicts itself (E-rendezvous-facts).
        penstock.PeerError: a rank does not join in time (E-rendezvous-timeout).
        penstock.StateError: called after `shutdown` (E-collective-left).

    {example}
        assert 0 <= hvd.rank() < hvd.size()
    """
    watch_this_thread()
    with _lock:
        if is_initialized():
            return
        if comm:
            raise not_built(
                f"hvd.init: comm={comm!r} is not supported: the launcher decides which processes are "
                "ranks; give process_sets for operations of some ranks"
            )
        addresses, rank = _penstock.job_of_environment() or (["localhost:0"], 0)
        _penstock.arrays_join(addresses if len(addresses) > 1 else [], rank)
        set_job(Job(addresses, rank))
        joining.open_job(rank, len(addresses))
        _process_sets.global_process_set.ranks = list(range(len(addresses)))
    for process_set in process_sets if process_sets and process_sets != "dynamic" else ():
        _process_sets.add_process_set(process_set)


@with_texts(ARRAYS)
def shutdown() -> None:
    """Leaves the job after all operations that this process has started have ended.

    Ranks that start operations afterwards get an error. A process that ends with exit code 0 leaves by itself.

    {example}
        hvd.shutdown()
    """
    with _lock:
        if is_initialized():
            joining.close_job()
            _process_sets.forget_all()
            if size() > 1:
                _penstock.arrays_leave()
        set_job(None)
