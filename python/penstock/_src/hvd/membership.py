"""init and shutdown: how this process joins the ranks of its job and leaves them."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import numpy

from penstock import _penstock
from penstock._src.base.doc_texts import with_texts
from penstock._src.base.errors import not_built, state_error
from penstock._src.executor.process_end import watch_this_thread
from penstock._src.hvd import joining, operations, ranked_programs, rounds
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
        if rounds.is_elastic():
            _join_round(rounds.next_round(-1, ""))
        else:
            _join(None)
    for process_set in process_sets if process_sets and process_sets != "dynamic" else ():
        _process_sets.add_process_set(process_set)


def _join(round: rounds.Round | None) -> Job:
    """Joins the ranks that the environment names."""
    addresses, rank = _penstock.job_of_environment() or (["localhost:0"], 0)
    _penstock.arrays_join(addresses if len(addresses) > 1 else [], rank)
    job = Job(addresses, rank, round)
    set_job(job)
    joining.open_job(rank, len(addresses))
    _process_sets.global_process_set.ranks = list(range(len(addresses)))
    return job


_has_worked = False  # this process has worked in an earlier round
_has_state = False  # it has the state of the job


def note_state() -> None:
    """Called when this process has received the state of an elastic job."""
    global _has_state
    _has_state = True


def _join_round(round: rounds.Round) -> None:
    """Joins a round of an elastic job, or the first later one whose ranks all live long enough to meet."""
    global _has_worked
    while True:
        watch = rounds.Watch(round)
        why = "a rank is lost"
        try:
            with watch:
                job = _join(round)
                job.new, job.root = _agree_on_past(job)
        except _penstock.PeerError as error:
            why = str(error)
        except KeyboardInterrupt:
            if not watch.ended:
                raise
        else:
            if not watch.ended:
                _has_worked = True
                ranked_programs.renumber_all(job)
                return
        round = _leave_round(round, why)


def _agree_on_past(job: Job) -> tuple[bool, int]:
    """Returns whether no rank has worked in an earlier round, and the lowest rank that has the state."""
    count = len(job.addresses)
    mine = numpy.array([_has_worked, _has_state], "int64")
    everyone = numpy.empty((count, 2), "int64")
    label = "hvd.init"
    joining.start(
        dict(kind="all_gather", label=label, tag=0),
        lambda: _penstock.arrays_all_gather(mine, everyone, "i64", [2] * count, label, 0),
    ).wait()
    holders = numpy.flatnonzero(everyone[:, 1])
    return not everyone[:, 0].any(), int(holders[0]) if len(holders) else 0


def _leave_round(round: rounds.Round, why: str) -> rounds.Round:
    """Leaves the ranks of a round, which learn why, and returns the next one."""
    joining.drop_job()
    operations.forget_all()
    _process_sets.forget_all()
    set_job(None)
    _penstock.arrays_start_over(why.partition("\n")[0])
    return rounds.next_round(round.number, why)


def join_next_round(job: Job, why: str) -> None:
    """Leaves the job's round and joins the next one, in which programs have another number of ranks, or other ones.

    Args:
        job: the job, as it was in the round.
        why: the error that has ended the round; "": it ends in order.

    Raises:
        PeerError: there is no further round (E-elastic-end).
        StateError: another thread runs a program (E-elastic-running); no launcher forms rounds (E-elastic-launch).
    """
    if job.round is None:
        raise state_error(
            "E-elastic-launch",
            "hvd.elastic: the ranks of this job cannot start over; start it by penstock.distributed.launch with "
            "--max_role_restart or --min_workers",
        )
    with _lock:
        _join_round(_leave_round(job.round, why))


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
