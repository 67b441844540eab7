"""The ranks of the job, and the rank of this process."""

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
    """Joins the job that the launcher's environment names, and waits for all ranks.

    It reads PADDLE_TRAINER_ENDPOINTS, and PADDLE_TRAINER_ID or PADDLE_CURRENT_ENDPOINT. Without them this process is
    a job of size 1. A second call does nothing.

    Raises:
        penstock.ProgramError: the environment contradicts itself (E-rendezvous-facts).
        penstock.PeerError: a rank does not join in time (E-rendezvous-timeout).
        penstock.StateError: called after `shutdown` (E-collective-left).

    Example:
        import penstock.hvd as hvd
        hvd.init()
        assert 0 <= hvd.rank() < hvd.size()
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
    """Leaves the job after all operations that this process has started have ended.

    Ranks that start operations afterwards get an error. A process that ends with exit code 0 leaves by itself.

    Example:
        import penstock.hvd as hvd
        hvd.init()
        hvd.shutdown()
    """
    global _job
    with _lock:
        if is_initialized() and len(_job.addresses) > 1:
            _penstock.arrays_leave()
        _job = None


def is_initialized():
    """Tells whether this process has joined a job and not left it.

    Returns:
        bool: whether it is in a job.

    Example:
        import penstock.hvd as hvd
        hvd.init()
        assert hvd.is_initialized()
    """
    return _job is not None and _job.process == os.getpid()


def the_job(asked):
    """Returns the job; raises an error that names the function `asked` if there is none."""
    if is_initialized():
        return _job
    raise state_error('E-hvd-init', 'hvd.%s: this process has not joined a job; call hvd.init() first' % asked)


def rank():
    """Returns the number of this process.

    Returns:
        int: from 0 to size() - 1.

    Raises:
        penstock.StateError: `init` has not been called (E-hvd-init).

    Example:
        import penstock.hvd as hvd
        hvd.init()
        assert hvd.rank() < hvd.size()
    """
    return the_job('rank').rank


def size():
    """Returns the number of processes of the job.

    Returns:
        int: at least 1.

    Raises:
        penstock.StateError: `init` has not been called (E-hvd-init).

    Example:
        import penstock.hvd as hvd
        hvd.init()
        assert hvd.size() >= 1
    """
    return len(the_job('size').addresses)


def local_rank():
    """Returns the number of this process among those of its host. Hosts are distinguished by their names in the job's
    addresses.

    Returns:
        int: from 0 to local_size() - 1.

    Raises:
        penstock.StateError: `init` has not been called (E-hvd-init).

    Example:
        import penstock.hvd as hvd
        hvd.init()
        assert hvd.local_rank() < hvd.local_size()
    """
    job = the_job('local_rank')
    return job.neighbours.index(job.rank)


def local_size():
    """Returns the number of processes of the job on this host.

    Returns:
        int: at least 1.

    Raises:
        penstock.StateError: `init` has not been called (E-hvd-init).

    Example:
        import penstock.hvd as hvd
        hvd.init()
        assert hvd.local_size() <= hvd.size()
    """
    return len(the_job('local_size').neighbours)
