"""Keeps the roles' process groups from outliving the launcher, however it ends.

The launcher consists of two processes. The one that the user started, the guard, only forwards signals and waits; its
child, the supervisor, starts and watches the roles. If the guard is killed, the kernel sends SIGTERM to the supervisor.
If the supervisor is killed, its roles become children of the guard, which is their subreaper and ends their groups.

A process group may be signalled only while its leader is a child that was not waited for: until then the kernel gives
the leader's number to no other process. Therefore the process that ends groups must be the parent of their leaders,
including dead leaders.
"""

from __future__ import annotations

import ctypes
import os
import select
import signal
import sys
import time
import traceback
from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    from collections.abc import Callable
    from posix import waitid_result
    from signal import Signals
    from types import FrameType
    from typing import Any


FORWARDED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
EXIT_SUPERVISOR_LOST = 1
KILL_WAIT_S = 3.0
_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36


def _prctl(option: int, value: Signals | int) -> None:
    ctypes.CDLL(None, use_errno=True).prctl(option, value, 0, 0, 0)


def die_with_parent(parent: int, number: Signals = signal.SIGKILL) -> None:
    """Makes this process receive the signal when its parent dies, or now if process `parent` has already died."""
    _prctl(_PR_SET_PDEATHSIG, number)
    if os.getppid() != parent:
        os.kill(os.getpid(), number)


def is_child(pid: int) -> bool:
    """Returns whether `pid` is a child of this process that was not waited for, alive or not."""
    try:
        os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return False
    return True


def signal_group(leader: int, number: Signals) -> None:
    """Signals the process group that child `leader` leads; does nothing if it is no longer a child of this process."""
    if not is_child(leader):
        return
    try:
        os.killpg(leader, number)
    except (ProcessLookupError, PermissionError):
        pass  # it has not created its group yet; the parent-death signal ends it


def _run_supervisor(body: Callable[..., Any], parent: int, registry: int, mask: set[Any]) -> None:
    """Runs in the forked child. Never returns."""
    code = EXIT_SUPERVISOR_LOST
    try:
        die_with_parent(parent, signal.SIGTERM)
        code = body(registry, lambda: signal.pthread_sigmask(signal.SIG_SETMASK, mask))
        sys.stdout.flush()
    except BrokenPipeError:
        pass
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(code)


def _wait_for(supervisor: int, leaders: Callable[[], list[int]]) -> waitid_result:
    """Returns the supervisor's siginfo. Meanwhile reaps orphans of which this process becomes the parent, except
    leaders of groups."""
    while True:
        ended = cast("waitid_result", os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOWAIT))
        if ended.si_pid != supervisor and ended.si_pid not in leaders():
            os.waitid(os.P_PID, ended.si_pid, os.WEXITED)
            continue
        # A leader is a child of this process only because the supervisor died.
        return cast("waitid_result", os.waitid(os.P_PID, supervisor, os.WEXITED))


def _end_groups(leaders: list[int]) -> None:
    children = [pid for pid in leaders if is_child(pid)]
    for pid in children:
        signal_group(pid, signal.SIGKILL)
    deadline = time.monotonic() + KILL_WAIT_S
    for pid in children:
        handle = os.pidfd_open(pid)
        ended = select.poll()
        ended.register(handle, select.POLLIN)
        ended.poll(1000 * max(0.0, deadline - time.monotonic()))
        os.close(handle)
        signal_group(pid, signal.SIGKILL)  # processes that its helpers have started meanwhile
        os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG)


def run_guarded(body: Callable[..., Any]) -> int:
    """Runs `body(registry, unblock)` in a supervisor process; returns its exit code.

    body  writes the number of each process group to the descriptor `registry`, one per line, before the group's leader
          runs anything, and calls unblock() once its own handlers of FORWARDED are installed.
    """
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, FORWARDED)
    listen, registry = os.pipe()
    sys.stdout.flush()
    sys.stderr.flush()
    parent = os.getpid()
    supervisor = os.fork()
    if supervisor == 0:
        os.close(listen)
        _run_supervisor(body, parent, registry, mask)
    os.close(registry)
    os.set_blocking(listen, False)
    registered = bytearray()

    def leaders() -> list[int]:
        try:
            while chunk := os.read(listen, 4096):
                registered.extend(chunk)
        except BlockingIOError:
            pass
        return [int(line) for line in registered.split()]

    def forward(received: int, _frame: FrameType | None) -> None:
        if is_child(supervisor):
            os.kill(supervisor, received)

    for number in FORWARDED:  # the supervisor is waited for only once, at the end, so its number is not reused before
        signal.signal(number, forward)
    signal.pthread_sigmask(signal.SIG_SETMASK, mask)
    ended = _wait_for(supervisor, leaders)
    if ended.si_code == os.CLD_EXITED:
        os.close(listen)
        return ended.si_status
    _end_groups(leaders())
    os.close(listen)
    print(
        f"error: launch: the supervisor of the roles was killed by signal {ended.si_status}; all roles were ended   "
        "[E-launch-killed]",
        file=sys.stderr,
    )
    return EXIT_SUPERVISOR_LOST
