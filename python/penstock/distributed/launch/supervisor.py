"""Runs the roles of a job on this machine to their end.

Each role is the leader of its own process group and dies with the launcher (the kernel's parent-death signal). The
launcher does not call wait(2) for a role before its group has ended: see guard.py. The first failure starts a grace
period, in which the others report what they noticed; then they are ended. The launchers of other machines are informed
of each end and of each failure (cluster.py), and do the same.
"""

import os
import selectors
import signal
import subprocess
import sys
import time

from penstock.distributed.launch.cause import explain_failure, explain_hang
from penstock.distributed.launch.console import Echo
from penstock.distributed.launch.flight import Flight
from penstock.distributed.launch.guard import FORWARDED, die_with_parent, signal_group
from penstock.distributed.launch.outcome import ENDED, JOB, OWN, REACTED, Failure, Notes, last_lines, pick_cause
from penstock.distributed.launch.receipts import path_of, read_receipts, table

EXIT_ROLE_FAILED = 1
LAST_LINES = 20
TERM_WAIT_S = 3.0
FINISH_S = 30.0  # after a failed job, the time to wait for the reports of the other machines
POLL_S = 0.1


class _Process:
    def __init__(self, role, log_path, log_begin, popen, notes, flight):
        self.role = role
        self.log_path = log_path
        self.log_begin = log_begin  # the position in the log at which the output of this attempt begins
        self.popen = popen  # only its pid is used, because waiting for it would free the number of the group
        self.pid = popen.pid
        self.notes = notes
        self.flight = flight
        self.started = time.monotonic()
        self.outcome = None  # describes how the process ended
        self.failed = False
        self.handle = os.pidfd_open(self.pid)

    def poll(self):
        """Returns subprocess's return code, or None. Does not wait for the child, so its number stays reserved."""
        ended = os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOWAIT | os.WNOHANG)
        if ended is None:
            return None
        return ended.si_status if ended.si_code == os.CLD_EXITED else -ended.si_status


def _child_environment(role):
    environment = {k: v for k, v in os.environ.items() if k.lower() not in {"http_proxy", "https_proxy"}}
    environment.update(role.environment)
    return environment


def _start(role, job, registry):
    log_path = os.path.join(job.log_dir, role.log_name)
    parent = os.getpid()
    notes, flight = Notes(), Flight()
    for path in (path_of(job.log_dir, role), _flight_path(job, role), _metrics_path(job, role)):
        _remove(path)  # the file of an earlier job

    def before_exec():
        os.write(registry, b"%d\n" % os.getpid())
        die_with_parent(parent)

    with open(log_path, "ab" if job.attempt else "wb") as log:  # a restarted job continues its logs
        if job.attempt:
            log.write(b"launch: attempt %d\n" % job.attempt)
            log.flush()
        log_begin = log.tell()
        popen = subprocess.Popen(
            job.command, env={**_child_environment(role), **notes.environment(), **flight.environment()},
            stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT, start_new_session=True,
            pass_fds=(notes.descriptor, flight.descriptor), preexec_fn=before_exec)
    notes.close_ours()
    flight.close_ours()
    return _Process(role, log_path, log_begin, popen, notes, flight)


def _flight_path(job, role):
    return os.path.join(job.log_dir, f"flight.{role.kind}.{role.index}.jsonl")


def _metrics_path(job, role):
    return os.path.join(job.log_dir, f"metrics.{role.kind}.{role.index}")


def _remove(path):
    try:
        os.unlink(path)
    except FileNotFoundError:
        pass


def _is_stopped(pid):
    """Returns whether a signal has stopped the process (state T of proc(5))."""
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] in {"T", "t"}
    except OSError:
        return False


def _describe_end(code):
    """Returns (words, failed) for a return code of subprocess."""
    if code == 0:
        return "ended well", False
    if code < 0:
        try:
            return f"was killed by {signal.Signals(-code).name}", True
        except ValueError:
            return f"was killed by signal {-code}", True
    return f"exited with code {code}", True


def _name(process):
    return f"{process.role.name} (pid {process.pid})"


class _Supervisor:
    def __init__(self, job, stop, cluster, registry, options):
        self._job = job
        self._stop = stop
        self._cluster = cluster  # None: a job on this machine only
        self._registry = registry
        self._grace_s = options.grace_s
        self._hang_timeout = options.hang_timeout
        self._quiet = options.quiet
        self._recordings = None  # recordings of all roles of this machine at the first failure
        self._explained = ""  # the sentence derived from the recordings
        self._echoed = "none" if options.quiet else options.console
        self._echoes = []
        self._processes = []
        self._failures = []  # failures of all machines, in the same order on each
        self._trainers_elsewhere = job.trainers_elsewhere
        self._deadline = None  # deadline for the end of the other roles
        self._selector = selectors.DefaultSelector()

    def run(self):
        try:
            self._start_all()
            if self._cluster is not None:
                self._cluster.start_beating()
            self._watch()
        finally:
            self._end_all()
        for echo in self._echoes:
            echo.pump(last=True)
        self._finish()
        return self._report()

    def _start_all(self):
        for role in self._job.roles:
            process = _start(role, self._job, self._registry)
            self._processes.append(process)
            if self._echoed == "all":
                self._echoes.append(Echo(process.log_path, process.log_begin, f"[{role.name}] "))
            elif self._echoed == "first" and role.kind == "trainer" and role.index == 0:
                self._echoes.append(Echo(process.log_path, process.log_begin))
            self._selector.register(process.handle, selectors.EVENT_READ, process)

    def _alive(self):
        return [process for process in self._processes if process.outcome is None]

    def _watch(self):
        while self._alive() and self._stop.signal is None:
            if self._deadline is not None and time.monotonic() > self._deadline:
                return
            for key, _ in self._selector.select(POLL_S):
                self._selector.unregister(key.fileobj)
                self._note_end(key.data)
            self._hear()
            for echo in self._echoes:
                echo.pump()
            self._end_if_hung()

    def _end_if_hung(self):
        progress = [at for at in (process.flight.progress() for process in self._alive()) if at is not None]
        now = time.monotonic()
        if self._hang_timeout <= 0 or not progress or self._deadline is not None:
            return
        if now - max(progress) < self._hang_timeout:
            return
        self._explained = explain_hang(self._record(), now)
        self._tell({"event": "hang", "why": f"has made no progress for {now - max(progress):.0f} s"})
        self._deadline = now  # no role can end by itself

    def _record(self):
        """Returns the recordings of all roles of this machine, as they were at the first call."""
        if self._recordings is None:
            self._recordings = [self._recording(process) for process in self._processes]
        return self._recordings

    def _recording(self, process):
        state = process.outcome or ("is stopped by a signal" if _is_stopped(process.pid) else "")
        return process.flight.read(process.role.name, process.role.address, state)

    def _write_recordings(self):
        """Writes the recordings if any role has recorded something."""
        recordings = [(process, recording) for process, recording in zip(self._processes, self._record())
                      if recording.events]
        now = time.monotonic()
        for process, recording in recordings:
            try:
                recording.write(_flight_path(self._job, process.role), now)
            except OSError as error:
                print(f"launch: {error}", file=sys.stderr)
        return bool(recordings)

    def _hasten(self):
        """Starts the grace period of the other roles at the first call."""
        if self._deadline is None:
            self._deadline = time.monotonic() + self._grace_s

    def _note_end(self, process, by_launcher=False):
        words, failed = _describe_end(process.poll())
        after = time.monotonic() - process.started
        reacted = process.notes.read_reacted()
        process.outcome = f"was ended by the launcher ({words})" if by_launcher else words
        process.failed = failed or by_launcher
        if process.failed and not self._failures:
            self._record()
        kind = ENDED if by_launcher else REACTED if reacted else OWN
        event = {"event": "end", "kind": process.role.kind, "failure": None}
        if process.failed:
            event["failure"] = {
                "who": _name(process), "kind": kind, "log": process.log_path,
                "words": f"{process.outcome}, {after:.1f} s after it was started",
                "lines": last_lines(process.log_path, LAST_LINES)}
        self._tell(event)
        if not by_launcher and process.failed:
            self._hasten()
        self._end_servers_in_time()

    def _end_servers_in_time(self):
        """Pservers end by themselves once every trainer has completed. Ends a pserver that does not, and reports it."""
        if self._trainers_elsewhere <= 0 and not any(p.role.kind == "trainer" for p in self._alive()):
            self._hasten()

    def _tell(self, event):
        if self._cluster is None:
            self._on_event({**event, "node": self._job.rank})
        else:
            self._cluster.tell(event)

    def _hear(self):
        for event in self._cluster.pump() if self._cluster is not None else ():
            self._on_event(event)

    def _on_event(self, event):
        node = event["node"]
        if event["event"] == "end":
            failure = event["failure"]
            if failure is not None:
                self._failures.append(Failure(node, failure["who"], failure["words"], failure["kind"], failure["log"],
                                              tuple(failure["lines"])))
            if node != self._job.rank:
                self._trainers_elsewhere -= event["kind"] == "trainer"
                if failure is not None:
                    self._hasten()
                self._end_servers_in_time()
        elif event["event"] == "hang":
            self._failures.append(Failure(node, JOB, event["why"], OWN))
            self._hasten()
        elif event["event"] in ("stop", "lost"):
            words = event["why"] if event["event"] == "stop" else f"is gone: {event['why']}"
            self._failures.append(Failure(node, "", words, OWN))
            self._hasten()

    def _end_all(self):
        """Ends the remaining processes of all groups, including helpers of roles that have ended, then frees the
        groups' numbers."""
        if self._stop.signal is not None:
            self._tell({"event": "stop", "why": f"was stopped by {signal.Signals(self._stop.signal).name}"})
        for number, patience in ((signal.SIGTERM, TERM_WAIT_S), (signal.SIGKILL, TERM_WAIT_S)):
            for process in self._processes:
                signal_group(process.pid, number)
            deadline = time.monotonic() + patience
            while self._alive() and time.monotonic() < deadline:
                for key, _ in self._selector.select(POLL_S):
                    self._selector.unregister(key.fileobj)
                    self._note_end(key.data, by_launcher=True)
                self._hear()
        for process in self._processes:
            os.close(process.handle)
            if process.outcome is None:
                process.outcome, process.failed = "could not be ended", True
            else:
                process.popen.wait()

    def _finish(self):
        """With several machines, waits until the others have ended too, so that all launchers know the same facts."""
        if self._cluster is None:
            return
        self._cluster.tell({"event": "done"})
        deadline = time.monotonic() + FINISH_S
        while not self._cluster.all_over() and self._stop.signal is None:
            if self._failures and time.monotonic() > deadline:
                break
            time.sleep(POLL_S)
            self._hear()
        self._hear()
        self._cluster.leave()

    def _where(self, node):
        return f" on node {node} ({self._job.nodes[node]})" if len(self._job.nodes) > 1 else ""

    def _report(self):
        if self._stop.signal is not None:
            print(f"launch: stopped by {signal.Signals(self._stop.signal).name}; all roles were ended", file=sys.stderr)
            return self._stop.exit_code()
        cause = pick_cause(self._failures)
        if not self._quiet:
            for line in table(read_receipts(self._job.log_dir, self._job.roles), self._job.pservers):
                print(line, flush=True)
        if cause is None:
            return 0
        if cause.who == JOB:
            print(f"error: launch: {cause.who} {cause.words}   [E-launch-hang]", file=sys.stderr)
        elif cause.who:
            print(f"error: launch: {cause.who}{self._where(cause.node)} {cause.words}   [E-launch-role]",
                  file=sys.stderr)
        else:
            print(f"error: launch: node {cause.node} ({self._job.nodes[cause.node]}) {cause.words}   [E-launch-node]",
                  file=sys.stderr)
        if cause.lines:
            print(f"  last lines of {cause.log}{self._where(cause.node)}:", file=sys.stderr)
            for line in cause.lines:
                print(f"    {line}", file=sys.stderr)
        for process in self._processes:
            if cause.node != self._job.rank or cause.who != _name(process):
                print(f"  {process.role.name} {process.outcome}; its log is {process.log_path}", file=sys.stderr)
        self._explain(cause)
        return EXIT_ROLE_FAILED

    def _explain(self, cause):
        """Prints the cause derived from the recordings as the last line."""
        if not self._write_recordings():
            return
        print(f"  the last events of each role are in {os.path.join(self._job.log_dir, 'flight.*.jsonl')}",
              file=sys.stderr)
        for process in self._processes:
            if cause.node == self._job.rank and cause.who == _name(process):
                self._explained = explain_failure(self._record(), process.role.name, process.outcome)
        if self._explained:
            print(f"cause: {self._explained}", file=sys.stderr)


class Stop:
    """The first signal that requested the launcher's end."""

    def __init__(self):
        self.signal = None

    def install(self):
        for number in FORWARDED:
            signal.signal(number, self._on_signal)

    def exit_code(self):
        """Returns the exit code: 130 after Ctrl-C, as in a shell."""
        return 128 + self.signal

    def _on_signal(self, number, _frame):
        self.signal = self.signal or number


def run_job(job, stop, cluster, registry, options):
    """Starts this machine's roles of `job` and waits for the end of all. Returns the launcher's exit code.

    stop      a Stop whose handlers are installed
    cluster   the launchers of the other machines; None if there are none
    registry  a descriptor that receives the number of each process group (guard.py)
    options   grace_s: seconds that the other roles have after the first failure, and pservers after the last trainer
              has ended; quiet: print neither trainer 0's output nor the receipt; hang_timeout: seconds without progress
              after which the job ends, 0 for never
    """
    return _Supervisor(job, stop, cluster, registry, options).run()
