"""Process sets: ranks of a job that run operations among themselves."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, cast

import numpy

from penstock import _penstock
from penstock._src.base.call_site import call_site
from penstock._src.base.doc_texts import with_texts
from penstock._src.base.errors import program_error
from penstock._src.hvd import joining
from penstock._src.hvd.job import is_initialized, the_job
from penstock._src.hvd.texts import ARRAYS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from penstock._penstock import ProgramError
    from penstock._src.hvd.job import Job
    from penstock._src.ir.typing import Array


class Ring:
    """The ring of a process set."""

    def __init__(self, number: int, ranks: list[int] | range, position: int) -> None:
        self.number = number
        self.ranks = ranks  # of the job, in the order of the ring
        self.position = position  # of this process in `ranks`

    def position_of(self, function: str, root_rank: int) -> int:
        """Returns the position of a rank of the job in this ring."""
        if not isinstance(root_rank, bool) and isinstance(root_rank, (int, numpy.integer)) and root_rank in self.ranks:
            return self.ranks.index(root_rank)
        right = f"from 0 to {len(self.ranks) - 1}" if self.number == 0 else f"one of the ranks {self.ranks}"
        raise program_error("E-hvd-root", f"hvd.{function}: root_rank is {root_rank!r}; it must be {right}")


@with_texts(ARRAYS)
class ProcessSet:
    """Ranks of a job that run operations among themselves, while other ranks do other things.

    Give it to `init` or `add_process_set` first, on all ranks of the job, also on those that it does not contain.

    Args:
        ranks_or_comm (list[int]): ranks of the job. Horovod also accepts a communicator of MPI.

    Raises:
        ValueError: not a list of ranks.

    {example}
        first = hvd.add_process_set(hvd.ProcessSet([0]))
        if first.included():
            hvd.allreduce(np.ones(2), process_set=first)
        hvd.remove_process_set(first)
    """

    process_set_id: int | None = None
    ranks: list[int] | None = None
    mpi_comm = None

    def __init__(self, ranks_or_comm: Sequence[int]) -> None:
        if isinstance(ranks_or_comm, (str, bytes)) or not hasattr(ranks_or_comm, "__iter__"):
            raise _wrong("ProcessSet", f"it takes a list of ranks, not {type(ranks_or_comm).__name__}")
        ranks = list(ranks_or_comm)
        if any(isinstance(rank, bool) or not isinstance(rank, (int, numpy.integer)) for rank in ranks):
            raise _wrong("ProcessSet", f"a rank is an integer, but the list is {ranks!r}")
        self.ranks = sorted(int(rank) for rank in ranks)

    def size(self) -> int | None:
        """Counts the ranks in the set.

        Returns:
            int | None: their number; None if the set was not added.
        """
        return None if self.process_set_id is None else len(_ranks_of(self))

    def rank(self) -> int | None:
        """Returns the number of this process among the ranks of the set.

        Returns:
            int | None: from 0 to size() - 1; None if the set was not added.

        Raises:
            ValueError: the set does not contain this process (E-hvd-process-set).
        """
        if self.process_set_id is None:
            return None
        ranks, mine = _ranks_of(self), the_job("ProcessSet.rank").rank
        if mine not in ranks:
            raise _wrong("ProcessSet.rank", f"rank {mine} is not in the set, which has the ranks {ranks}")
        return ranks.index(mine)

    def included(self) -> bool | None:
        """Tells whether the set contains this process.

        Returns:
            bool | None: whether it does; None if the set of all ranks is asked before `init`.

        Raises:
            penstock.StateError: `init` has not been called (E-hvd-init).
        """
        if self is global_process_set and not is_initialized():
            return None
        return the_job("ProcessSet.included").rank in _ranks_of(self)

    def __str__(self) -> str:
        return f"ProcessSet(process_set_id={self.process_set_id}, ranks={self.ranks}, mpi_comm=None)"


global_process_set = ProcessSet([])
global_process_set.process_set_id = 0

_ids = itertools.count(1)
_sets: dict[int, ProcessSet] = {}  # the sets that were added, by id


def _wrong(function: str, text: str) -> ProgramError:
    return program_error("E-hvd-process-set", f"hvd.{function}: {text}")


def _ranks_of(process_set: ProcessSet) -> list[int]:
    if process_set is global_process_set:
        return list(range(len(the_job("global_process_set").addresses)))
    return cast("list[int]", process_set.ranks)


def ring_of(function: str, process_set: ProcessSet | None) -> Ring:
    """Returns the Ring of a process set, None: of all ranks; raises if this process cannot use it."""
    job = the_job(function)
    if process_set is None or process_set is global_process_set:
        return Ring(0, range(len(job.addresses)), job.rank)
    if not isinstance(process_set, ProcessSet):
        raise TypeError(f"hvd.{function}: process_set must be a ProcessSet, not {type(process_set).__name__}")
    if _sets.get(cast(int, process_set.process_set_id)) is not process_set:
        raise _wrong(
            function,
            f"the process set {process_set.ranks} was not added to the job, or was removed; call add_process_set on "
            "all ranks",
        )
    ranks = _ranks_of(process_set)
    if job.rank not in ranks:
        raise _wrong(function, f"rank {job.rank} is not in the process set, which has the ranks {process_set.ranks}")
    return Ring(-cast(int, process_set.process_set_id), ranks, ranks.index(job.rank))


def _agree(function: str, job: Job, ranks: list[int]) -> None:
    """Raises on all ranks if they do not all give the same ranks."""
    mine = numpy.zeros(1 + len(job.addresses), "int64")
    mine[0] = 1 if function == "add_process_set" else 2
    mine[[1 + rank for rank in ranks]] = 1
    everyone = numpy.empty((len(job.addresses), len(mine)), "int64")
    label = ", ".join(part for part in ("hvd." + function, call_site()) if part)
    joining.start(
        dict(kind="all_gather", label=label, tag=0),
        lambda: _penstock.arrays_all_gather(mine, everyone, "i64", [len(mine)] * len(job.addresses), label, 0),
    ).wait()
    for rank, other in enumerate(everyone):
        if (other != everyone[0]).any():
            raise _wrong(
                function,
                "all ranks must call it with the same process set, but rank 0 gives the ranks "
                f"{_listed(everyone[0])} and rank {rank} the ranks {_listed(other)}",
            )


def _listed(row: Array) -> list[int]:
    return [int(rank) for rank in numpy.flatnonzero(row[1:])]


@with_texts(ARRAYS)
def add_process_set(process_set: ProcessSet | Sequence[int]) -> ProcessSet:
    """Adds a process set to the job. All ranks of the job must call it, with the same ranks and in the same order.

    Args:
        process_set (ProcessSet | list[int]): the set, or its ranks.

    Returns:
        ProcessSet: the set, which operations then accept.

    Raises:
        penstock.ProgramError: a rank does not exist, there is a set of these ranks already, or ranks give different
            sets (E-hvd-process-set).

    {example}
        first = hvd.add_process_set([0])
        assert first.size() == 1
        hvd.remove_process_set(first)
    """
    job = the_job("add_process_set")
    if not isinstance(process_set, ProcessSet):
        process_set = ProcessSet(process_set)
    ranks, count = process_set.ranks, len(job.addresses)
    if not ranks or len(set(ranks)) != len(ranks) or not 0 <= ranks[0] <= ranks[-1] < count:
        raise _wrong("add_process_set", f"the ranks are {ranks}; they must be different ones from 0 to {count - 1}")
    if any(known.ranks == ranks for known in _sets.values()):
        raise _wrong("add_process_set", f"there is a process set of the ranks {ranks} already")
    _agree("add_process_set", job, ranks)
    number = next(_ids)
    if job.rank in ranks:
        _penstock.arrays_make_ring(-number, ranks)
    process_set.process_set_id = number
    _sets[number] = process_set
    return process_set


@with_texts(ARRAYS)
def remove_process_set(process_set: ProcessSet) -> bool:
    """Removes a process set from the job, after its operations have ended. All ranks of the job must call it.

    Args:
        process_set (ProcessSet): a set that was added.

    Returns:
        bool: whether it was removed; False for the set of all ranks and for one that is not in the job.

    Raises:
        penstock.ProgramError: ranks give different sets (E-hvd-process-set).

    {example}
        first = hvd.add_process_set([0])
        assert hvd.remove_process_set(first)
    """
    job = the_job("remove_process_set")
    number = process_set.process_set_id
    if not number or _sets.get(number) is not process_set:
        return False
    ranks = _ranks_of(process_set)
    _agree("remove_process_set", job, ranks)
    if job.rank in ranks:
        _penstock.arrays_drop_ring(-number)
    del _sets[number]
    process_set.process_set_id = None
    return True


def forget_all() -> None:
    """Called when the process leaves the job."""
    for process_set in _sets.values():
        process_set.process_set_id = None
    _sets.clear()
