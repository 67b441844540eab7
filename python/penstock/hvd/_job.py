"""Who the ranks are, and which of them this process is."""

import os
import threading

from penstock import _penstock
from penstock._errors import state_error
from penstock.fluid._process_end import watch_this_thread


class _Job:

    def __init__(self, addresses, rank):
        self.addresses = addresses
        self.rank = rank
        self.process = os.getpid()
        here = _host(addresses[rank])
        self.neighbours = [r for r, address in enumerate(addresses) if _host(address) == here]


def _host(address):
    return address.rpartition(':')[0]


_lock = threading.Lock()
_job = None


def init():
    """Joins the job that the launcher's environment names; returns when all ranks have come.

    Reads PADDLE_TRAINER_ENDPOINTS, and PADDLE_TRAINER_ID or PADDLE_CURRENT_ENDPOINT. Without them this process is a job
    of its own, of size 1. Again: does nothing.

    Raises: penstock.ProgramError E-rendezvous-facts (the environment contradicts itself); penstock.PeerError
    E-rendezvous-timeout (a rank does not come); penstock.StateError E-collective-left (after shutdown()).
    """
    global _job
    watch_this_thread()
    with _lock:
        if is_initialized():
            return
        addresses, rank = _penstock.job_of_environment() or (['localhost:0'], 0)
        _penstock.arrays_join(addresses if len(addresses) > 1 else [], rank)
        _job = _Job(addresses, rank)


def shutdown():
    """Leaves the job, when all operations that this process has started are done. Other ranks that still start some get
    an error. A process that ends with exit code 0 does so by itself."""
    global _job
    with _lock:
        if is_initialized() and len(_job.addresses) > 1:
            _penstock.arrays_leave()
        _job = None


def is_initialized():
    """Whether this process has joined, and has not left."""
    return _job is not None and _job.process == os.getpid()


def the_job(asked):
    """Where `asked`, a name of a function, needs one."""
    if is_initialized():
        return _job
    raise state_error('E-hvd-init', 'hvd.%s: this process has not joined a job; call hvd.init() first' % asked)


def rank():
    """This process's number, from 0 to size() - 1."""
    return the_job('rank').rank


def size():
    """How many processes the job has."""
    return len(the_job('size').addresses)


def local_rank():
    """This process's number among those of its host, from 0. Hosts are told apart as the job's addresses name them."""
    job = the_job('local_rank')
    return job.neighbours.index(job.rank)


def local_size():
    """How many processes the job has on this host."""
    return len(the_job('local_size').neighbours)
