"""The job's trace: each role records into a file of the folder of --trace (PENSTOCK_TRACE); at the end the launcher of
machine 0 merges the files into one for Perfetto."""

from __future__ import annotations

import glob
import os
import socket
from typing import TYPE_CHECKING

from penstock import _penstock
from penstock._src.launch.logs import remove

if TYPE_CHECKING:
    from typing import Any


MERGED = "job.pftrace"


def clear(folder: str) -> None:
    """Removes what an earlier job of this machine has left. Call it before any role of this job is started."""
    for path in glob.glob(os.path.join(glob.escape(folder), f"trace.{glob.escape(socket.gethostname())}.*")):
        remove(path)
    remove(os.path.join(folder, MERGED))


def merge(folder: str, rank: int) -> Any:
    """Merges the traces; returns (lines to print, error or None). `rank`: of this machine."""
    if rank > 0:
        return [
            f"trace: the traces of this machine are in {folder}; machine 0 merges those that it finds in its own folder"
        ], None
    path = os.path.join(folder, MERGED)
    try:
        processes = _penstock.merge_traces(folder, path)
    except (ValueError, OSError) as error:
        return [], f"error: launch: {error}"
    events = sum(count for _, _, count, _ in processes)
    lost = sum(count for _, _, _, count in processes)
    left_out = f" ({lost} were left out)" if lost else ""
    return [
        f"trace: {events} events{left_out} of {len(processes)} processes are in {path}; open it at "
        "https://ui.perfetto.dev"
    ], None
