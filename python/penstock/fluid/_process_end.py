"""How a process ends, which decides whether its trainer is done.

exit() tells C++ the process's status, which covers every way out of the main thread, and neither os._exit nor a signal
calls it. What it does not cover is watched here.
"""

import atexit
import multiprocessing
import multiprocessing.util
import os
import sys
import threading

from penstock import _penstock
from penstock.fluid import _last_words

this_thread = threading.local()    # .ran: it has run programs
_watched_process = None             # its id
_thread_failed = False


def watch_process():
    """Once a process: a forked child inherits what was set up for its parent, and multiprocessing clears some."""
    global _watched_process, _thread_failed
    if _watched_process == os.getpid():
        return
    if _watched_process is None:
        _chain_thread_hook()
    _watched_process, _thread_failed = os.getpid(), False
    if multiprocessing.parent_process() is not None:
        multiprocessing.util.Finalize(None, _end_of_child, exitpriority=-1000)    # behind all others


def watch_this_thread():
    """It takes part in the job: an exception that ends it is the job's."""
    watch_process()
    this_thread.ran = True


def _chain_thread_hook():
    """An exception that ends a thread leaves the process's exit code 0."""
    report = threading.excepthook

    def hook(args):
        global _thread_failed
        if getattr(this_thread, 'ran', False):    # called in the thread that ends
            _thread_failed = True
        report(args)

    threading.excepthook = hook


def _end_of_child():
    """A child of multiprocessing leaves by os._exit. Its finalizers run while what ended its function is handled."""
    error = sys.exc_info()[1]
    well = error is None or isinstance(error, SystemExit) and error.code in (None, 0)
    _penstock.end_child_rpc('' if well and not _thread_failed else '%s ended its process' % type(error).__name__)


@atexit.register
def _end_of_interpreter():
    _penstock.end_rpc(thread_failed=_thread_failed)


atexit.register(_last_words.tell)  # runs before _end_of_interpreter, which was registered first
