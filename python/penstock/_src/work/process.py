"""Where a process runs, so that another one on the same machine can see that it has ended.

where = this_process()       # sent to the other one
is_gone(where)               # False too if that process runs on another machine
"""

from __future__ import annotations

import os


def this_process() -> str:
    """Returns machine, number and start time of this process; "" where they cannot be read."""
    machine, started = _machine(), _started(os.getpid())
    return f"{machine} {os.getpid()} {started}" if machine and started else ""


def is_gone(where: str) -> bool:
    """Returns whether the process has certainly ended."""
    machine, _, rest = where.partition(" ")
    pid, _, started = rest.partition(" ")
    if not machine or machine != _machine() or not pid.isdigit():
        return False
    return _started(int(pid)) != started


def _machine() -> str:
    """Returns a name of this start of this machine, and of the processes that are numbered together."""
    try:
        with open("/proc/sys/kernel/random/boot_id") as file:
            return f"{file.read().strip()}/{os.readlink('/proc/self/ns/pid')}"
    except OSError:
        return ""


def _started(pid: int) -> str:
    """Returns the start time of a living process; "" if there is none. A zombie is none."""
    try:
        with open(f"/proc/{pid}/stat") as file:
            fields = file.read().rpartition(")")[2].split()
    except OSError:
        return ""
    return "" if fields[0] in "ZX" else fields[19]
