"""create: a store of a type, in the process that calls it."""

from __future__ import annotations

import atexit
import sys
from typing import TYPE_CHECKING

from penstock import _penstock
from penstock._src.base import environment
from penstock._src.base.errors import state_error
from penstock._src.executor import process_end
from penstock._src.kv.kinds import kind_of
from penstock._src.kv.local import LocalStore
from penstock._src.kv.newest import note
from penstock._src.kv.ranks import RanksStore
from penstock._src.kv.roles import place_of_environment
from penstock._src.kv.served import ServedStore
from penstock._src.kv.store import KVStore

if TYPE_CHECKING:
    from penstock._src.kv.kinds import Kind
    from penstock._src.kv.roles import Place

BIG_ARRAY = 1_000_000  # elements; a key with fewer lies whole on one server
_of_process: list[ServedStore] = []


def create(name: str = "local") -> KVStore:
    """Makes a store.

    * local, device: this process holds the values; those of several devices are added.
    * dist, dist_sync: pservers hold them; an update happens when all workers have pushed a key.
    * dist_async: pservers hold them; each push is an update.
    * dist_sync_mpi, nccl, horovod: each worker holds all of them; sums by all-reduce, without pservers.

    `_device` may be added to types of pservers, and the words after `dist` may stand in any order. In the process of a
    pserver or scheduler, create('dist_...') serves and ends the process, so that one script is every role. The launcher
    starts all of them: python -m penstock.distributed.launch --server_num 1 --worker_num 2 SCRIPT

    Args:
        name (str): the type; capitals do not matter.

    Returns:
        KVStore: without keys.

    Raises:
        TypeError: `name` is no str.
        penstock.ProgramError: E-kv-type: there is no such type; E-kv-environment: the environment does not describe a
            job with pservers.
        penstock.StateError: E-kv-second: the process has a store over pservers already.
        penstock.PeerError: E-kv-scheduler: the scheduler cannot be reached.

    Example:
        kv = penstock.kv.create('local')
        kv.init(3, np.ones((2, 3), 'float32'))
        kv.push(3, np.full((2, 3), 8, 'float32'))
        assert (kv.pull(3) == 8).all() and kv.rank == 0 and kv.num_workers == 1
    """
    kind = kind_of(name)
    if kind.over == "process":
        return note(KVStore(kind, LocalStore(kind.on_device)))
    if kind.over == "ranks":
        return note(KVStore(kind, RanksStore(LocalStore(on_device=True))))
    if _of_process:
        raise state_error("E-kv-second", "kv.create: this process has a store over pservers already; use that one")
    place = place_of_environment()
    if place.role != "worker":
        if place.role == "server":
            _serve(place)
        sys.exit(0)
    store = note(KVStore(kind, _joined(kind, place)))
    process_end.watch_this_thread()
    return store


def _serve(place: Place) -> None:
    _penstock.serve_keys(place.address, place.workers, job=place.job)
    if place.member is not None:
        place.member.complete()


def _joined(kind: Kind, place: Place) -> ServedStore:
    client = _penstock.KvClient(
        place.servers,
        place.number,
        place.workers,
        sync=not kind.is_async,
        bound=environment.value("MXNET_KVSTORE_BIGARRAY_BOUND", BIG_ARRAY),
        job=place.job,
    )
    store = ServedStore(client, in_fours=not kind.on_device, member=place.member)
    _of_process.append(store)
    return store


@atexit.register
def _end() -> None:
    """A process that ends in order has completed; one that ends by an exception says so."""
    kind = getattr(sys, "last_type", None)
    why = ""
    if kind is not None:
        why = f"{kind.__name__}: {sys.last_value}".partition("\n")[0]
    elif process_end.thread_failed():
        why = "an exception ended a thread that was part of the job"
    for store in _of_process:
        if why:
            store.abandon(why)
        else:
            store.end_with_process()
