"""A thread that runs a user's reader and prefetches its batches into a queue."""

from __future__ import annotations

import atexit
import threading
import traceback
import weakref
from typing import TYPE_CHECKING

from penstock._penstock import BatchQueue, StateError
from penstock._src.base.errors import state_error

if TYPE_CHECKING:
    from collections.abc import Callable
    from threading import Thread
    from typing import Any
    from weakref import ReferenceType

    from penstock._penstock import LoDTensor


_pumps: weakref.WeakSet[Pump] = weakref.WeakSet()


class QueueToFill:
    """A reader's queue, for scripts that push batches themselves."""

    def __init__(self, queue: BatchQueue) -> None:
        self._queue = queue

    def push(self, batch: list[LoDTensor]) -> bool:
        """Appends a list or LoDTensorArray of arrays or LoDTensors, and waits for room; returns False if the queue is
        closed."""
        return self._queue.push([batch[i] for i in range(len(batch))])

    def size(self) -> int:
        """Returns the number of batches in the queue."""
        return self._queue.size()

    def close(self) -> None:
        """Ends the data: a program reads the batches in the queue, and then reaches the end."""
        self._queue.end()

    def kill(self) -> None:
        """Discards the batches in the queue."""
        self._queue.close()


class Pump:
    """Call start(source), then next() until it returns None, or run a program with `read` ops. stop() may be called at
    any time.

    source  takes no arguments and returns an iterable of batches: lists of arrays or LoDTensors, which are copied
    An exception of the source is raised when the consumer requests the batch after the last good one.
    """

    def __init__(self, capacity: int) -> None:
        self.queue = BatchQueue(capacity)
        self.error: BaseException | None = None
        self._thread: Thread | None = None
        _pumps.add(self)

    @property
    def started(self) -> bool:
        return self._thread is not None

    @property
    def thread(self) -> threading.Thread:
        """The thread that reads ahead, or an idle thread."""
        if self._thread is not None:
            return self._thread
        idle = threading.Thread()
        idle.start()
        return idle

    def queue_to_fill(self) -> QueueToFill:
        """The queue, open for scripts that push batches themselves if no thread does."""
        if not self.started:
            self.queue.open()
        return QueueToFill(self.queue)

    def start(self, source: Callable[..., Any]) -> None:
        if self.started:
            raise state_error("E-reader-order", "the reader is started already; call its reset() first")
        self.error = None
        self.queue.open()
        self._thread = threading.Thread(
            target=_run, args=(weakref.ref(self), self.queue, source), daemon=True, name="penstock-reader"
        )
        self._thread.start()

    def next(self) -> list[LoDTensor] | None:
        """Returns a list of LoDTensors, or None at the end."""
        try:
            return self.queue.pop()
        except StateError as error:
            raise_from_reader(error)
            raise

    def stop(self, timeout: float | None = None) -> None:
        """Discards the prefetched batches, and waits until the source has returned."""
        self.queue.close()
        thread, self._thread = self._thread, None
        if thread is not None and thread is not threading.current_thread():
            thread.join(timeout)

    def __del__(self) -> None:
        self.queue.close()


def _name(queue: BatchQueue) -> str:
    return f"in the thread of reader {queue.number}:"


def _run(pump: ReferenceType[Pump], queue: BatchQueue, source: Callable[..., Any]) -> None:
    """Runs on the thread. It does not keep the pump alive, so that the thread ends when the loader is
    garbage-collected."""
    try:
        for batch in source():
            if not queue.push(batch):
                return
        queue.end()
    except BaseException as error:
        held = pump()
        if held is not None:
            held.error = error
        where = "".join(traceback.format_tb(error.__traceback__)).splitlines()
        queue.fail(f"{type(error).__name__}: {error}", [_name(queue)] + where)


def raise_from_reader(error: StateError) -> None:
    """Raises the exception of a user's reader, with its own traceback, if it caused `error`."""
    if error.id != "E-read-failed":
        return
    for pump in list(_pumps):
        if pump.error is not None and error.details[0] == _name(pump.queue):
            raise pump.error from None


@atexit.register
def _stop_all() -> None:
    for pump in list(_pumps):
        pump.stop(timeout=1.0)
