"""Detects how a process ends, which decides whether its trainer has completed.

exit() passes the process's status to C++, however the main thread ends; os._exit and signals do not call it. This
module handles the cases that exit() does not cover.
"""

from __future__ import annotations

import atexit
import multiprocessing
import multiprocessing.util
import os
import sys
import threading
from typing import TYPE_CHECKING

from penstock import _penstock
from penstock._src.executor import failure_report

if TYPE_CHECKING:
    from typing import Any


this_thread = threading.local()  # .ran: whether the thread has run programs
_watched_process = None  # the id of the process that has the hooks
_thread_failed = False


def watch_process() -> None:
    """Installs the hooks once per process. A forked child inherits those of its parent, but multiprocessing removes
    some of them."""
    global _watched_process, _thread_failed
    if _watched_process == os.getpid():
        return
    if _watched_process is None:
        _chain_thread_hook()
    _watched_process, _thread_failed = os.getpid(), False
    if multiprocessing.parent_process() is not None:
        multiprocessing.util.Finalize(None, _end_of_child, exitpriority=-1000)  # runs after all others


def watch_this_thread() -> None:
    """Marks this thread as part of the job: an exception that ends it fails the trainer."""
    watch_process()
    this_thread.ran = True


def thread_failed() -> bool:
    """Tells whether an exception has ended a thread that was part of the job."""
    return _thread_failed


def _chain_thread_hook() -> None:
    """Installs threading.excepthook, because an exception that ends a thread leaves the process's exit code 0."""
    report = threading.excepthook

    def hook(args: Any) -> None:
        global _thread_failed
        if getattr(this_thread, "ran", False):  # called in the thread that ends
            _thread_failed = True
        report(args)

    threading.excepthook = hook


def _end_of_child() -> None:
    """Runs at the end of a child process of multiprocessing, which ends by os._exit. Finalizers run while the exception
    that ended its function is being handled."""
    error = sys.exc_info()[1]
    well = error is None or isinstance(error, SystemExit) and error.code in (None, 0)
    _penstock.end_child_rpc("" if well and not _thread_failed else f"{type(error).__name__} ended its process")


@atexit.register
def _end_of_interpreter() -> None:
    _penstock.end_rpc(thread_failed=_thread_failed)


atexit.register(failure_report.tell)  # runs before _end_of_interpreter, which was registered first
