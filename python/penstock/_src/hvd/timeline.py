"""start_timeline and stop_timeline: the operations of this process as a timeline in Chrome's trace format."""

from __future__ import annotations

import json
import threading
import time
from typing import TYPE_CHECKING

from penstock._src.base.errors import state_error
from penstock._src.hvd.job import the_job

if TYPE_CHECKING:
    pass


_lock = threading.Lock()
_file = None
_path = None
_rows: dict[str, int] = {}  # numbers of the rows, by the name of the operation


def start_timeline(file_path: str, mark_cycles: bool = False) -> None:
    """Begins to record the operations of rank 0 in a file, which Chrome (about:tracing) and Perfetto read.

    All ranks may call it; as in Horovod, rank 0 writes the file. An operation lasts from its start until its result is
    taken.

    Args:
        file_path (str): the file, which is overwritten.
        mark_cycles (bool): accepted for Horovod's scripts: there are no cycles.

    Raises:
        penstock.StateError: a timeline is being recorded already (E-hvd-timeline).
        OSError: the file cannot be written.

    Example:
        import os, tempfile
        import penstock.hvd as hvd
        hvd.init()
        hvd.start_timeline(os.path.join(tempfile.mkdtemp(), 'timeline.json'))
        hvd.allreduce(np.ones(2, 'float32'))
        hvd.stop_timeline()
    """
    global _file, _path
    if the_job("start_timeline").rank != 0:
        return
    with _lock:
        if _file is not None:
            raise state_error(
                "E-hvd-timeline", f"hvd.start_timeline: {_path} is being recorded; call stop_timeline first"
            )
        _file, _path = open(file_path, "w", encoding="utf-8"), file_path
        _rows.clear()
        _file.write('[{"name": "process_name", "ph": "M", "pid": 0, "args": {"name": "hvd"}}')


def stop_timeline() -> None:
    """Ends the recording and closes the file. Has no effect if nothing is recorded.

    Example:
        import penstock.hvd as hvd
        hvd.init()
        hvd.stop_timeline()
    """
    global _file
    the_job("stop_timeline")
    with _lock:
        if _file is not None:
            _file.write("\n]\n")
            _file.close()
            _file = None


def begin(name: str, kind: str) -> tuple[str, str, int] | None:
    """Returns the event of an operation that starts; None if nothing is recorded."""
    return (name, kind, time.perf_counter_ns()) if _file is not None else None


def end(event: tuple[str, str, int] | None) -> None:
    """Records an event that has ended. Operations of one name share a row."""
    if event is None:
        return
    name, kind, begun = event
    now = time.perf_counter_ns()
    with _lock:
        if _file is None:
            return
        if name not in _rows:
            _rows[name] = len(_rows)
            _write({"name": "thread_name", "ph": "M", "pid": 0, "tid": _rows[name], "args": {"name": name}})
        _write(
            {
                "name": kind,
                "cat": "hvd",
                "ph": "X",
                "ts": begun / 1000,
                "dur": (now - begun) / 1000,
                "pid": 0,
                "tid": _rows[name],
            }
        )


def _write(event: dict[str, object]) -> None:
    assert _file is not None
    _file.write(",\n" + json.dumps(event))
