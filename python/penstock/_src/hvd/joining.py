"""hvd.join: ranks that have no more data take part in the others' reductions with neutral elements.

A rank that joins cannot know which operations the others start. The ranks number their operations, and a thread of each
rank looks, when an operation takes long, whether another rank has joined. If so, this rank tells the store of the job
what its operations are, now and from then on; the ranks that have joined ask the store for the operation of each number
and run it with neutral elements. Without a join, nothing is sent.
"""

from __future__ import annotations

import atexit
import collections
import json
import os
import threading
import weakref
from typing import TYPE_CHECKING, cast

import numpy

from penstock import _penstock
from penstock._src.base.doc_texts import with_texts
from penstock._src.base.errors import program_error
from penstock._src.executor.process_end import watch_this_thread
from penstock._src.hvd.job import the_job
from penstock._src.hvd.texts import ARRAYS

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from penstock._penstock import _PendingArrays


_LOOK_EVERY_S = 0.2
_DTYPES = {
    "f16": "float16",
    "f32": "float32",
    "f64": "float64",
    "i8": "int8",
    "u8": "uint8",
    "i32": "int32",
    "i64": "int64",
}


class _Begun:
    """An operation that this rank has started."""

    def __init__(self, number: int, what: dict[str, int | str]) -> None:
        self.number, self.what = number, what
        self.pending: weakref.ref[_penstock._PendingArrays] | None = (
            None  # a weak reference, so that the arrays of an operation that has ended are freed
        )
        self.ended = False

    def done(self) -> bool:
        if self.pending is None:
            return self.ended
        pending = self.pending()
        return pending is None or pending.done()


class _Ranks:
    """What this process knows of its operations over all ranks."""

    def __init__(self, process: int | None, rank: int = 0, size: int = 1) -> None:
        self.process, self.rank, self.size = process, rank, size
        self.lock = threading.RLock()  # held while an operation gets its number and starts
        self.count = 0  # operations begun
        self.round = 0  # how often all ranks have joined
        self.others_joined = False
        self.begun: collections.deque[_Begun] = collections.deque()
        self.stop = threading.Event()


_ranks = _Ranks(None)


def _key(round_: int, number: int) -> str:
    return f"hvd/{round_}/operation/{number}"


def _joined_counter(round_: int) -> str:
    return f"hvd/{round_}/joined"


def open_job(rank: int, size: int) -> None:
    """Called when this process has joined a job."""
    global _ranks
    _ranks = _Ranks(os.getpid(), rank, size)
    if size > 1:
        threading.Thread(target=_look_for_joins, args=(_ranks,), name="penstock.hvd", daemon=True).start()


def close_job() -> None:
    """Called when this process leaves its job: ranks that have joined learn that it starts no more operations."""
    ranks = _ranks
    if ranks.process != os.getpid() or ranks.stop.is_set():
        return
    ranks.stop.set()
    if ranks.size > 1:
        try:
            _say(ranks, {"kind": "left", "rank": ranks.rank})
        except (RuntimeError, ConnectionError):  # the job is over
            pass


def drop_job() -> None:
    """Called when the round of an elastic job has ended: nobody is left to be told anything."""
    _ranks.stop.set()


atexit.register(close_job)


def _say(ranks: _Ranks, what: dict[str, int | str]) -> None:
    """Tells the ranks that have joined what comes in the place of this rank's next operation."""
    with ranks.lock:
        _penstock.ranks_tell(_key(ranks.round, ranks.count), json.dumps(what))


def _begin(what: dict[str, int | str]) -> _Begun:
    """Numbers an operation. Hold the lock."""
    begun = _Begun(_ranks.count, what)
    _ranks.count += 1
    while _ranks.begun and _ranks.begun[0].done():
        _ranks.begun.popleft()
    _ranks.begun.append(begun)
    if _ranks.others_joined:
        _tell(begun)
    return begun


def _tell(begun: Any) -> None:
    _penstock.ranks_tell(_key(_ranks.round, begun.number), json.dumps(begun.what))


def start(what: dict[str, int | str], call: Callable[[], _PendingArrays]) -> _PendingArrays:
    """Returns call(), which starts an operation of all ranks that `what` describes."""
    with _ranks.lock:
        begun = _begin(what)
        try:
            pending = call()
            begun.pending = weakref.ref(pending)
        except BaseException:
            begun.ended = True
            raise
    return pending


def run(what: dict[str, int | str], call: Callable[[], None]) -> None:
    """As start, for an operation that has ended when call() returns."""
    with _ranks.lock:
        begun = _begin(what)
    try:
        call()
    finally:
        begun.ended = True


def _look_for_joins(ranks: _Ranks) -> None:
    """The thread that notices that other ranks have joined."""
    last = None
    last_running: list[tuple[int, int, str]] = []
    while not ranks.stop.wait(_LOOK_EVERY_S):
        with ranks.lock:
            oldest = next((begun for begun in ranks.begun if not begun.done()), None)
        try:
            if oldest is not None:
                if oldest is last and not ranks.others_joined and _any_joined(ranks):
                    _tell_all(ranks)
                last, last_running = oldest, []
                continue
            last, running = None, _penstock.arrays_running()
            if running and running == last_running and _any_joined(ranks):
                _refuse_program(ranks, running[0][2])
                return
            last_running = running
        except (RuntimeError, ConnectionError):  # the job is over; whoever waits for an operation gets the error
            return


def _any_joined(ranks: _Ranks) -> bool:
    return _penstock.ranks_count(_joined_counter(ranks.round), 0) > 0


def _tell_all(ranks: _Ranks) -> None:
    with ranks.lock:
        ranks.others_joined = True
        for begun in ranks.begun:
            if not begun.done():
                _tell(begun)


def _refuse_program(ranks: _Ranks, text: str) -> None:
    message = (
        f"hvd.join: a rank has joined while rank {ranks.rank} runs a program ({text}); only allreduce of arrays goes "
        "on without it: give all ranks the same number of batches, or use Executor.batches with on_uneven='join'"
    )
    _say(ranks, {"kind": "refused", "why": message})
    _penstock.arrays_end("E-hvd-join", message)


@with_texts(ARRAYS)
def join(device: int = -1) -> int:
    """Tells the other ranks that this one has no more data, and waits until all ranks have joined.

    Until then, the other ranks can call `allreduce` and its relatives: this rank contributes zeros to Sum, Average and
    Adasum (the mean is still divided by the number of all ranks), and nothing to Min, Max and Product.

    Args:
        device (int): accepted for Horovod's scripts.

    Returns:
        int: the rank that joined last.

    Raises:
        penstock.ProgramError: another rank starts an operation other than an allreduce, or runs a program
            (E-hvd-join); or it leaves the job without a call of join.
        penstock.PeerError: another rank is gone.

    {example}
        for batch in range(3 + hvd.rank()):
            hvd.allreduce(np.ones(2, 'float32'))
        last = hvd.join()
    """
    job = the_job("join")
    watch_this_thread()
    if len(job.addresses) == 1:
        return 0
    with _ranks.lock:
        number, round_ = _ranks.count, _ranks.round
    if _penstock.ranks_count(_joined_counter(round_), 1) == len(job.addresses):
        _penstock.ranks_tell(_key(round_, number), json.dumps({"kind": "end", "last": job.rank}))
    while True:
        what = json.loads(_ask(_key(round_, number)))
        if what["kind"] == "end":
            break
        if what["kind"] == "refused":
            raise program_error("E-hvd-join", what["why"])
        if what["kind"] == "left":
            raise program_error("E-hvd-join", f"hvd.join: rank {what['rank']} has left the job without a call of join")
        _take_part(what, job.rank)
        number += 1
    with _ranks.lock:
        _ranks.count, _ranks.round, _ranks.others_joined = number, round_ + 1, False
        _ranks.begun.clear()
    return cast(int, what["last"])


def _ask(key: str) -> str:
    while True:
        try:
            return _penstock.ranks_ask(key)
        except _penstock.PeerError as error:
            if error.id != "E-rendezvous-timeout":  # the others may take long
                raise


def _neutral(how: Any, dtype: numpy.dtype[Any]) -> int | float:
    if how == "product":
        return 1
    if how not in ("min", "max"):
        return 0
    if dtype.kind == "f":
        return numpy.inf if how == "min" else -numpy.inf
    return numpy.iinfo(dtype).max if how == "min" else numpy.iinfo(dtype).min


def _take_part(what: dict[str, Any], rank: int) -> None:
    """Runs an operation of the other ranks with neutral elements."""
    kind, label, tag = what["kind"], what["label"], what["tag"]
    if kind == "barrier":
        _penstock.arrays_barrier(label).wait()
        return
    if kind not in ("all_reduce", "adasum"):
        message = (
            f"hvd.join: rank {rank} has joined, but another rank starts {label}, which needs the data of all ranks; "
            "only allreduce goes on without a rank"
        )
        _penstock.arrays_end("E-hvd-join", message)
        raise program_error("E-hvd-join", message)
    dtype = numpy.dtype(_DTYPES[what["type"]])
    array = numpy.full(what["count"], _neutral(what.get("how"), dtype), dtype)
    if kind == "adasum":
        _penstock.arrays_adasum(array, what["type"], label, tag)
    else:
        _penstock.arrays_all_reduce(array, what["type"], what["how"], label, tag).wait()
