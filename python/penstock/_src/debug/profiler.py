"""Times ops, and reports the times as a table by type and as a timeline.

Users import penstock.fluid.profiler, whose docstring has an example.
"""

from __future__ import annotations

import contextlib
import json
import os
from typing import TYPE_CHECKING

from penstock import _penstock
from penstock._src.base import devices
from penstock._src.base.file_writing import save_file

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Any


_STATES = ("CPU", "GPU", "All")
_OPTIONS = ("Default", "OpDetail", "AllOpDetail")
# The column by which a table is sorted, the largest first: (type, calls, total, min, max, mean).
_COLUMNS = {"calls": 1, "total": 2, "min": 3, "max": 4, "ave": 5}
_MS = 1e-6  # milliseconds per nanosecond, the unit of the timer


def start_profiler(state: str, tracer_option: str = "Default") -> None:
    """Starts to time ops; has no effect if it was started already.

    Args:
        state (str): 'CPU', 'GPU' or 'All'. Ops are timed where they run, on the CPU, whichever is given.
        tracer_option (str): 'Default', 'OpDetail' or 'AllOpDetail'; all of them time each op.

    Raises:
        ValueError: `state` or `tracer_option` has another value.

    Example:
        fluid.profiler.start_profiler('All')
        fluid.profiler.stop_profiler('total', 'profile.json')
    """
    _require("state", state, _STATES)
    _require("tracer_option", tracer_option, _OPTIONS)
    if not _penstock.op_timer_runs():
        _penstock.reset_op_timer()
        _penstock.start_op_timer()


def stop_profiler(sorted_key: str | None = None, profile_path: str = "/tmp/profile") -> None:
    """Stops the timing, prints the table and writes the timeline; has no effect if the timing was not started.

    Args:
        sorted_key (str): the column by which the table is sorted, the largest value first: 'calls', 'total', 'max',
            'min' or 'ave'. None or 'default': types in the order in which they first ran.
        profile_path (str): file of the timeline, in the trace format of Chrome; '': no file is written.

    Raises:
        ValueError: `sorted_key` has another value.

    Example:
        fluid.profiler.start_profiler('CPU')
        fluid.profiler.stop_profiler(sorted_key='total', profile_path='profile.json')
    """
    if sorted_key not in (None, "default"):
        _require("sorted_key", sorted_key, tuple(_COLUMNS))
    if not _penstock.op_timer_runs():
        return
    _penstock.stop_op_timer()
    print(_table(_rows(), sorted_key), flush=True)
    if profile_path:
        _write_timeline(profile_path)
    _penstock.reset_op_timer()


def reset_profiler() -> None:
    """Discards the times measured so far, and continues.

    Example:
        fluid.profiler.start_profiler('CPU')
        fluid.profiler.reset_profiler()
        fluid.profiler.stop_profiler(profile_path='')
    """
    _penstock.reset_op_timer()


@contextlib.contextmanager
def profiler(
    state: str, sorted_key: str | None = None, profile_path: str = "/tmp/profile", tracer_option: str = "Default"
) -> Iterator[None]:
    """Times the ops that run inside it: calls start_profiler at the beginning and stop_profiler at the end.

    Args:
        state (str): as in start_profiler.
        sorted_key (str): as in stop_profiler.
        profile_path (str): as in stop_profiler.
        tracer_option (str): as in start_profiler.

    Yields:
        None: inside, ops are timed.

    Example:
        y = fluid.layers.relu(fluid.data('x', [2]))
        with fluid.profiler.profiler('CPU', 'total', 'profile.json'):
            fluid.Executor().run(feed={'x': np.ones(2, 'float32')}, fetch_list=[y])
    """
    start_profiler(state, tracer_option)
    try:
        yield
    finally:
        stop_profiler(sorted_key, profile_path)


@contextlib.contextmanager
def cuda_profiler(
    output_file: str, output_mode: str | None = None, config: Sequence[Any] | None = None
) -> Iterator[None]:
    """Times GPU kernels with NVIDIA's profiler; a build without CUDA does not support it.

    Args:
        output_file (str): file for the times.
        output_mode (str): 'kvp', or 'csv' (None).
        config (list): options of the profiler.

    Yields:
        None: inside, kernels are timed.

    Raises:
        ValueError: `output_mode` has another value.
        NotImplementedError: PENSTOCK_CUDA_FALLBACK=1 is not set; with it, ops run on the CPU and no file is written.

    Example:
        if fluid.is_compiled_with_cuda():
            with fluid.profiler.cuda_profiler('kernels.csv', 'csv'):
                pass
    """
    _require("output_mode", output_mode or "csv", ("kvp", "csv"))
    devices.use_cpu_for("cuda_profiler")
    yield


def _require(name: str, value: str, known: tuple[str, ...]) -> None:
    if value not in known:
        raise ValueError(f"profiler: {name} must be one of {', '.join(known)}, not {value!r}")


def _rows() -> list[tuple[str, int, float, float, float, float]]:
    """Returns [(type, calls, total, min, max, mean)] in milliseconds."""
    return [
        (kind, calls, total * _MS, low * _MS, high * _MS, total * _MS / calls)
        for kind, calls, total, low, high in _penstock.op_times()
    ]


def _table(rows: list[tuple[str, int, float, float, float, float]], sorted_key: str | None) -> str:
    if sorted_key in _COLUMNS:
        rows = sorted(rows, key=lambda row: row[_COLUMNS[sorted_key]], reverse=True)
    total = sum(row[2] for row in rows)
    width = max([len("Event")] + [len(row[0]) for row in rows]) + 2
    order = sorted_key if sorted_key in _COLUMNS else "first run"
    lines = [
        "",
        f"------- Profile of ops, in ms, by {order} -------",
        f"{'Event':<{width}}{'Calls':>12}{'Total':>14}{'Min.':>12}{'Max.':>12}{'Ave.':>12}{'Ratio.':>10}",
    ]
    for kind, calls, spent, low, high, mean in rows:
        share = spent / total if total else 0.0
        lines.append(f"{kind:<{width}}{calls:12d}{spent:14.6g}{low:12.6g}{high:12.6g}{mean:12.6g}{share:10.6f}")
    return "\n".join(lines + [""])


def _write_timeline(path: str) -> None:
    """Writes a complete event ('X') for each op, in microseconds."""
    names = [row[0] for row in _penstock.op_times()]
    events, left_out = _penstock.op_events()
    process = os.getpid()
    trace = [
        {
            "name": names[kind],
            "cat": "op",
            "ph": "X",
            "pid": process,
            "tid": thread,
            "ts": begin / 1000,
            "dur": (end - begin) / 1000,
        }
        for kind, thread, begin, end in events
    ]
    timeline = {"traceEvents": trace, "displayTimeUnit": "ms", "otherData": {"left_out": left_out}}
    save_file(path, json.dumps(timeline).encode())
