"""The ranks of the job, and the rank of this process."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from penstock._src.base.doc_texts import with_texts
from penstock._src.base.errors import state_error
from penstock._src.hvd.texts import ARRAYS, NEEDS_INIT

if TYPE_CHECKING:
    from penstock._src.hvd.rounds import Round


class Job:
    def __init__(self, addresses: list[str], rank: int, round: Round | None = None) -> None:
        self.addresses = addresses
        self.round = round  # of an elastic job
        self.new = True  # no rank has worked in an earlier round
        self.root = 0  # the lowest rank that has the state of an earlier round
        self.rank = rank
        self.process = os.getpid()
        here = _host(addresses[rank])
        self.neighbours = [r for r, address in enumerate(addresses) if _host(address) == here]


def _host(address: str) -> str:
    return address.rpartition(":")[0]


_job = None


def set_job(job: Job | None) -> None:
    """Makes `job` this process's job; None: it has left."""
    global _job
    _job = job


@with_texts(ARRAYS)
def is_initialized() -> bool:
    """Tells whether this process has joined a job and not left it.

    Returns:
        bool: whether it is in a job.

    {example}
        assert hvd.is_initialized()
    """
    return _job is not None and _job.process == os.getpid()


def the_job(asked: str) -> Job:
    """Returns the job; raises an error that names the function `asked` if there is none."""
    if _job is not None and is_initialized():
        return _job
    raise state_error("E-hvd-init", f"hvd.{asked}: this process has not joined a job; call hvd.init() first")


@with_texts(NEEDS_INIT)
def rank() -> int:
    """Returns the number of this process.

    Returns:
        int: from 0 to size() - 1.

    {needs_init_example}
        assert hvd.rank() < hvd.size()
    """
    return the_job("rank").rank


@with_texts(NEEDS_INIT)
def size() -> int:
    """Returns the number of processes of the job.

    Returns:
        int: at least 1.

    {needs_init_example}
        assert hvd.size() >= 1
    """
    return len(the_job("size").addresses)


@with_texts(NEEDS_INIT)
def local_rank() -> int:
    """Returns the number of this process among those of its host. Hosts are distinguished by their names in the job's
    addresses.

    Returns:
        int: from 0 to local_size() - 1.

    {needs_init_example}
        assert hvd.local_rank() < hvd.local_size()
    """
    job = the_job("local_rank")
    return job.neighbours.index(job.rank)


@with_texts(NEEDS_INIT)
def local_size() -> int:
    """Returns the number of processes of the job on this host.

    Returns:
        int: at least 1.

    {needs_init_example}
        assert hvd.local_size() <= hvd.size()
    """
    return len(the_job("local_size").neighbours)


def _hosts(job: Job) -> list[list[int]]:
    """Returns the ranks of each host, in the order of the hosts' first ranks."""
    hosts: dict[str, list[int]] = {}
    for rank, address in enumerate(job.addresses):
        hosts.setdefault(_host(address), []).append(rank)
    return list(hosts.values())


@with_texts(NEEDS_INIT)
def cross_rank() -> int:
    """Returns the number of this process's host among the hosts that have a process of its local rank.

    Returns:
        int: from 0 to cross_size() - 1.

    {needs_init_example}
        assert hvd.cross_rank() < hvd.cross_size()
    """
    job = the_job("cross_rank")
    place = job.neighbours.index(job.rank)
    return [ranks for ranks in _hosts(job) if len(ranks) > place].index(job.neighbours)


@with_texts(NEEDS_INIT)
def cross_size() -> int:
    """Returns the number of hosts that have a process of this process's local rank.

    Returns:
        int: at least 1.

    {needs_init_example}
        assert hvd.cross_size() >= 1
    """
    job = the_job("cross_size")
    place = job.neighbours.index(job.rank)
    return sum(len(ranks) > place for ranks in _hosts(job))


@with_texts(NEEDS_INIT)
def is_homogeneous() -> bool:
    """Tells whether every host has the same number of processes of the job.

    Returns:
        bool: whether it has.

    {needs_init_example}
        hvd.is_homogeneous()
    """
    return len({len(ranks) for ranks in _hosts(the_job("is_homogeneous"))}) == 1
