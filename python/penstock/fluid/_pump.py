"""A thread that runs a user's reader and fills a queue with its batches, ahead of who takes them."""

import atexit
import threading
import traceback
import weakref

from penstock._penstock import BatchQueue, StateError

_pumps = weakref.WeakSet()


class QueueToFill:
    """A reader's queue for scripts that push its batches themselves."""

    def __init__(self, queue):
        self._queue = queue

    def push(self, batch):
        """Appends a list or LoDTensorArray of arrays or LoDTensors, waiting for room; False if the queue is closed."""
        return self._queue.push([batch[i] for i in range(len(batch))])

    def size(self):
        """How many batches wait."""
        return self._queue.size()

    def close(self):
        """Says that no more batches come: a program reads those that wait, and then meets the end."""
        self._queue.end()

    def kill(self):
        """Drops the batches that wait."""
        self._queue.close()


class Pump:
    """start(source), then next() until it gives None, or a program's `read` ops; stop() in between as well.

    source  without arguments, gives an iterable of batches: lists of arrays or LoDTensors, which are copied
    What the source raises is raised where the batch after the last good one is asked for.
    """

    def __init__(self, capacity):
        self.queue = BatchQueue(capacity)
        self.error = None
        self._thread = None
        _pumps.add(self)

    @property
    def started(self):
        return self._thread is not None

    @property
    def thread(self):
        """What reads ahead; a thread that has nothing to do, where none does."""
        if self._thread is not None:
            return self._thread
        idle = threading.Thread()
        idle.start()
        return idle

    def queue_to_fill(self):
        """The queue, open for those who push batches themselves where no thread does."""
        if not self.started:
            self.queue.open()
        return QueueToFill(self.queue)

    def start(self, source):
        if self.started:
            raise RuntimeError('the reader is started already; call its reset() first')
        self.error = None
        self.queue.open()
        self._thread = threading.Thread(target=_run, args=(weakref.ref(self), self.queue, source), daemon=True,
                                        name='penstock-reader')
        self._thread.start()

    def next(self):
        """A list of LoDTensors, or None at the end."""
        try:
            return self.queue.pop()
        except StateError as error:
            raise_from_reader(error)
            raise

    def stop(self, timeout=None):
        """Drops what was read ahead, and waits until the source has been left."""
        self.queue.close()
        thread, self._thread = self._thread, None
        if thread is not None and thread is not threading.current_thread():
            thread.join(timeout)

    def __del__(self):
        self.queue.close()


def _name(queue):
    return 'in the thread of reader %d:' % queue.number


def _run(pump, queue, source):
    """The thread. It does not keep the pump, so that a loader nobody holds any more ends it."""
    try:
        for batch in source():
            if not queue.push(batch):
                return
        queue.end()
    except BaseException as error:
        held = pump()
        if held is not None:
            held.error = error
        where = ''.join(traceback.format_tb(error.__traceback__)).splitlines()
        queue.fail('%s: %s' % (type(error).__name__, error), [_name(queue)] + where)


def raise_from_reader(error):
    """Raises what a user's reader raised, with its own traceback, if `error` is what came of it."""
    if error.id != 'E-read-failed':
        return
    for pump in list(_pumps):
        if pump.error is not None and error.details[0] == _name(pump.queue):
            raise pump.error from None


@atexit.register
def _stop_all():
    for pump in list(_pumps):
        pump.stop(timeout=1.0)
