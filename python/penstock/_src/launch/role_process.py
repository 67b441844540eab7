"""One role's process: how it is started, and how it ended."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from typing import TYPE_CHECKING

from penstock._src.launch.flight import Flight
from penstock._src.launch.guard import die_with_parent
from penstock._src.launch.logs import open_log, remove
from penstock._src.launch.outcome import Notes
from penstock._src.launch.receipts import path_of

if TYPE_CHECKING:
    from subprocess import Popen

    from penstock._src.launch.link import Link
    from penstock._src.launch.plan import Job, Role


class Process:
    def __init__(
        self, role: Role, restart: int, log_path: str, log_begin: int, popen: Popen[bytes], notes: Notes, flight: Flight
    ) -> None:
        self.role = role
        self.restart = restart  # how often the role was started before, by itself
        self.log_path = log_path
        self.log_begin = log_begin  # the position in the log at which the output of this attempt begins
        self.popen = popen  # only its pid is used, because waiting for it would free the number of the group
        self.pid = popen.pid
        self.notes = notes
        self.flight = flight
        self.started = time.monotonic()
        self.ended = 0.0  # of one whose role is started again
        self.replaces: Process | None = None  # the process of the same role before it
        self.is_back = False  # of one that replaces another: it has said what it has recovered
        self.outcome: str | None = None  # describes how the process ended
        self.failed = False
        self.failed_by: int | None = None  # subprocess's return code, if it is not 0
        self.stopped_at: float | None = None  # when it was last seen stopped by a signal
        self.handle = os.pidfd_open(self.pid)

    def poll(self) -> int | None:
        """Returns subprocess's return code, or None. Does not wait for the child, so its number stays reserved."""
        ended = os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOWAIT | os.WNOHANG)
        if ended is None:
            return None
        return ended.si_status if ended.si_code == os.CLD_EXITED else -ended.si_status


def _child_environment(role: Role) -> dict[str, str]:
    environment = {k: v for k, v in os.environ.items() if k.lower() not in {"http_proxy", "https_proxy"}}
    environment.update(role.environment)
    return environment


def start(
    role: Role, job: Job, registry: int, restart: int = 0, link: Link | None = None, continues: bool = False
) -> Process:
    """Starts a role of the job; writes the number of its process group to the descriptor `registry`. Raises JobError or
    OSError.

    restart  how often this role has been started before, by itself (restarts.py)
    link     the connection with an elastic rank
    continues  whether its log has the output of an earlier process of this job
    """
    log_path = os.path.join(job.log_dir, role.log_name)
    parent = os.getpid()
    notes, flight = Notes(), Flight()
    for path in (path_of(job.log_dir, role), flight_path(job, role), metrics_path(job, role)):
        remove(path)  # the file of an earlier job

    def before_exec() -> None:
        os.write(registry, b"%d\n" % os.getpid())
        die_with_parent(parent)

    with open_log(log_path, continues=job.attempt > 0 or restart > 0 or continues) as log:
        if restart or job.attempt:
            log.write(b"launch: restart %d\n" % restart if restart else b"launch: attempt %d\n" % job.attempt)
            log.flush()
        log_begin = log.tell()
        popen = subprocess.Popen(
            job.command,
            env={
                **_child_environment(role),
                "PENSTOCK_ROLE_RESTART_COUNT": str(restart),
                **notes.environment(),
                **flight.environment(),
                **(link.environment() if link else {}),
            },
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            pass_fds=(notes.descriptor, flight.descriptor, *([link.descriptor] if link else [])),
            preexec_fn=before_exec,
        )
    notes.close_ours()
    flight.close_ours()
    if link:
        link.close_theirs()
    try:
        return Process(role, restart, log_path, log_begin, popen, notes, flight)
    except OSError:  # no descriptor is left to watch it
        popen.kill()
        popen.wait()
        raise


def flight_path(job: Job, role: Role) -> str:
    return os.path.join(job.log_dir, f"flight.{role.kind}.{role.index}.jsonl")


def metrics_path(job: Job, role: Role) -> str:
    return os.path.join(job.log_dir, f"metrics.{role.kind}.{role.index}")


def is_stopped(pid: int) -> bool:
    """Returns whether a signal has stopped the process (state T of proc(5))."""
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] in {"T", "t"}
    except OSError:
        return False


def describe_end(code: int) -> tuple[str, bool]:
    """Returns (words, failed) for a return code of subprocess."""
    if code == 0:
        return "ended well", False
    if code < 0:
        try:
            return f"was killed by {signal.Signals(-code).name}", True
        except ValueError:
            return f"was killed by signal {-code}", True
    return f"exited with code {code}", True


def shell_status(code: int) -> int:
    """Returns the exit code by which a shell states a return code of subprocess."""
    return code if code >= 0 else 128 - code


def name_of(process: Process) -> str:
    return f"{process.role.name} (pid {process.pid})"
