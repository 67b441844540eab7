"""Runs the roles of a job on this machine to their end.

Each role is the leader of its own process group and dies with the launcher (the kernel's parent-death signal). The
launcher does not call wait(2) for a role before its group has ended: see guard.py. The first failure starts a grace
period, in which the others report what they noticed; then they are ended. The launchers of other machines are informed
of each end and of each failure (cluster.py), and do the same.
"""

from __future__ import annotations

import os
import selectors
import signal
import sys
import time
from typing import TYPE_CHECKING, cast

from penstock._src.launch.blame import find_cause
from penstock._src.launch.cause import explain_failure, explain_hang
from penstock._src.launch.console import Echo
from penstock._src.launch.elastic import make_elastic
from penstock._src.launch.errors import JobError
from penstock._src.launch.guard import signal_group
from penstock._src.launch.last_checkpoint import LastCheckpoint, can_stop
from penstock._src.launch.logs import last_lines, say
from penstock._src.launch.outcome import ENDED, JOB, OWN, REACTED, Failure
from penstock._src.launch.receipts import read_receipts, table
from penstock._src.launch.recordings import Recordings
from penstock._src.launch.restarts import Restarts, say_what_is_back
from penstock._src.launch.role_process import describe_end, name_of, start
from penstock._src.launch.traces import merge

if TYPE_CHECKING:
    from argparse import Namespace
    from typing import Any

    from penstock._src.launch.blame import Cause
    from penstock._src.launch.plan import Job, Role
    from penstock._src.launch.role_process import Process
    from penstock._src.launch.stop import Stop


EXIT_ROLE_FAILED = 1
EXIT_NOT_STARTED = 2
GRACE_S = 15.0
GRACE_ALONE_S = 5.0  # if no other role can have noticed the failure
LAST_LINES = 20
TERM_WAIT_S = 3.0
FINISH_S = 30.0  # after a failed job, the time to wait for the reports of the other machines
POLL_S = 0.1


class _Supervisor:
    def __init__(self, job: Job, stop: Stop, cluster: None, registry: int, options: Namespace) -> None:
        self._job = job
        self._stop = stop
        self._cluster = cluster  # None: a job on this machine only
        self._registry = registry
        self._grace_s = options.grace_s
        self._hang_timeout = options.hang_timeout
        self._quiet = options.quiet
        self._trace = options.trace
        self._recordings = Recordings(job)
        self._explained = ""  # the sentence derived from the recordings
        self._echoed = "none" if options.quiet else options.console
        self._echoes: list[Echo] = []
        self._processes: list[Process] = []  # the last of each role
        self._replaced: list[Process] = []  # those whose roles were started again
        self._restarts = Restarts({"pserver": job.role_restarts, "trainer": job.trainer_restarts}, job.shrinks)
        self._complete = False  # a trainer has ended well
        self._last = None if cluster or not can_stop(job) else LastCheckpoint(job.roles[0].environment, stop)
        self._saved = False  # it is there, so the job may end
        self._failures: list[Failure] = []  # failures of all machines, in the same order on each
        self._elastic = make_elastic(options, job)
        self._trainers_elsewhere = job.trainers_elsewhere
        self._deadline: float | None = None  # deadline for the end of the other roles
        self._selector: selectors.BaseSelector | None = None
        self._not_started: tuple[int, str] | None = None  # the exit code, if a role could not be started, and why

    def run(self) -> int:
        self._stop.saves = self._last is not None
        try:
            self._start_all()
            if self._cluster is not None:
                self._cluster.start_beating()
            self._watch()
        finally:
            self._stop.saves = False
            self._end_all()
            if self._last is not None:
                self._last.forget()
        for echo in self._echoes:
            echo.pump(last=True)
        self._finish()
        self._merge_traces()
        return self._report()

    def _start_all(self) -> None:
        """Starts the roles. If one cannot be started, the job ends."""
        role = None
        try:
            self._selector = selectors.DefaultSelector()
            for role in self._job.roles:
                self._start(role)
        except (JobError, OSError) as error:
            self._end_unstarted(error, role)

    def _end_unstarted(self, error: JobError | OSError, role: Role | None) -> None:
        what, code = str(error), EXIT_NOT_STARTED
        if isinstance(error, OSError):
            who = role.name if role else "any role"
            what, code = f"cannot start {who}: {error.strerror or error}   [E-launch-start]", EXIT_ROLE_FAILED
        self._not_started = code, what
        self._tell({"event": "stop", "why": what})
        self._deadline = time.monotonic()

    def _start(self, role: Role) -> None:
        process = self._start_process(role)
        self._processes.append(process)
        self._ended().register(process.handle, selectors.EVENT_READ, process)
        if self._echoed == "all":
            self._echoes.append(Echo(process.log_path, process.log_begin, f"[{role.name}] "))
        elif self._echoed == "first" and role.kind == "trainer" and role.index == 0:
            self._echoes.append(Echo(process.log_path, process.log_begin))

    def _start_again(self, ended: Process) -> None:
        """Starts the role of an ended process again, by itself."""
        try:
            process = self._start_process(ended.role, ended.restart + 1)
        except (JobError, OSError) as error:
            self._end_unstarted(error, ended.role)
            return
        process.replaces = ended
        self._processes[self._processes.index(ended)] = process
        self._replaced.append(ended)
        self._ended().register(process.handle, selectors.EVENT_READ, process)

    def _start_process(self, role: Role, restart: int = 0) -> Process:
        link = self._elastic.begins(role) if self._elastic is not None else None
        return start(role, self._job, self._registry, restart, link)

    def _alive(self) -> list[Process]:
        return [process for process in self._processes if process.outcome is None]

    def _watch(self) -> None:
        while (self._alive() or self._restarts.pending() or self._expects_rank()) and self._stop.signal is None:
            if self._deadline is not None:
                self._restarts.drop()
                if time.monotonic() > self._deadline:
                    return
            for ended in self._restarts.due(time.monotonic()):
                self._start_again(ended)
            for key, _ in self._ended().select(POLL_S):
                self._ended().unregister(key.fileobj)
                self._note_end(key.data)
            self._hear()
            for process in self._alive():
                say_what_is_back(process)
            self._restart_ranks()
            for echo in self._echoes:
                echo.pump()
            self._recordings.look_for_stopped(self._alive())
            for process in [] if self._failures else self._restarts.take_late(self._processes):
                signal_group(process.pid, signal.SIGKILL)
            self._end_if_hung()
            if self._last is not None and self._deadline is None and self._last.saved():
                self._saved = True
                return

    def _expects_rank(self) -> bool:
        return self._elastic is not None and self._elastic.expects()

    def _restart_ranks(self) -> None:
        """Starts the ranks that are to be restarted, after the helpers of their earlier processes have been ended."""
        due = self._elastic.pump(time.monotonic()) if self._elastic is not None else []
        for role in due if self._deadline is None else ():
            ended = next(process for process in self._processes if process.role is role)
            signal_group(ended.pid, signal.SIGKILL)
            self._start_again(ended)

    def _recovers(self, process: Process, failure: dict[str, Any] | None) -> bool:
        """Returns whether elastic ranks go on after the end of one."""
        if self._elastic is None or self._deadline is not None:
            return False
        facts = None if failure is None else self._failure_of(self._job.rank, failure)
        if self._elastic.takes(process.role, facts, time.monotonic()):
            self._recordings.forget()
            return True
        self._failures.extend(self._elastic.take_lost())
        return False

    def _end_if_hung(self) -> None:
        progress = [at for at in (process.flight.progress() for process in self._alive()) if at is not None]
        progress += [process.started for process in self._alive() if process.restart > 0]
        now = time.monotonic()
        if self._hang_timeout <= 0 or not progress or self._deadline is not None or self._stop.asked:
            return
        if now - max(progress) < self._hang_timeout:
            return
        self._explained = explain_hang(self._recordings.take(self._processes), now)
        self._tell({"event": "hang", "why": f"has made no progress for {now - max(progress):.0f} s"})
        self._deadline = now  # no role can end by itself

    def _hasten(self, met: bool = True) -> None:
        """Starts the grace period of the other roles at the first call; `met`: whether they can notice the failure."""
        if self._deadline is not None:
            return
        self._recordings.take(self._processes)
        usual = GRACE_S if met else GRACE_ALONE_S
        self._deadline = time.monotonic() + (usual if self._grace_s is None else self._grace_s)

    def _note_end(self, process: Process, by_launcher: bool = False) -> None:
        words, failed = describe_end(cast(int, process.poll()))
        after = time.monotonic() - process.started
        say_what_is_back(process)
        told = process.notes.read()
        goes_on = self._deadline is None and self._stop.signal is None
        if failed and not by_launcher and goes_on and self._restarts.take(process, told, self._complete):
            return
        process.outcome = f"was ended by the launcher ({words})" if by_launcher else words
        left_out = failed and not by_launcher and self._restarts.leave_out(process, told, self._complete)
        process.failed = (failed or by_launcher) and not left_out
        if process.failed and not self._failures:
            self._recordings.take(self._processes)
        kind = REACTED if told.reacted else ENDED if by_launcher else OWN
        met = told.met or told.reacted or process.flight.met()
        event: dict[str, Any] = {"event": "end", "kind": process.role.kind, "failure": None}
        if process.failed:
            event["failure"] = {
                "who": name_of(process),
                "kind": kind,
                "log": process.log_path,
                "words": f"{process.outcome}, {after:.1f} s after it was started",
                "lines": last_lines(process.log_path, LAST_LINES),
                "role": process.role.name,
                "outcome": process.outcome,
                "note": told.note,
                "stopped": self._recordings.was_stopped(process, self._processes),
                "met": met,
            }
        if not by_launcher and self._recovers(process, event["failure"]):
            return
        self._restarts.note_end(process)
        self._complete = self._complete or (process.role.kind == "trainer" and not process.failed and not left_out)
        self._tell(event)
        if not by_launcher and process.failed:
            # Where roles are restarted, the others wait for this one.
            self._hasten(met and not self._restarts.concerns(process))
        self._end_servers_in_time()

    def _end_servers_in_time(self) -> None:
        """Pservers end by themselves once every trainer has completed. Ends a pserver that does not, and reports it."""
        present = [*self._alive(), *self._restarts.pending()]
        if self._trainers_elsewhere <= 0 and not any(p.role.kind == "trainer" for p in present):
            self._hasten()

    def _tell(self, event: dict[str, Any]) -> None:
        if self._cluster is None:
            self._on_event({**event, "node": self._job.rank})
        else:
            self._cluster.tell(event)

    def _ended(self) -> selectors.BaseSelector:
        """The selector of the ends of processes, from the start of the first role on."""
        return cast(selectors.BaseSelector, self._selector)

    def _hear(self) -> None:
        if self._cluster is not None:
            for event in self._cluster.pump():
                self._on_event(event)

    def _on_event(self, event: dict[str, Any]) -> None:
        node = event["node"]
        if event["event"] == "end":
            failure = event["failure"]
            if failure is not None:
                self._failures.append(self._failure_of(node, failure))
            if node != self._job.rank:
                self._trainers_elsewhere -= event["kind"] == "trainer"
                self._complete = self._complete or (event["kind"] == "trainer" and failure is None)
                if failure is not None:
                    self._hasten(failure["met"])
                self._end_servers_in_time()
        elif event["event"] == "hang":
            self._failures.append(Failure(node, JOB, event["why"], OWN))
            self._hasten()
        elif event["event"] in ("stop", "lost"):
            words = event["why"] if event["event"] == "stop" else f"is gone: {event['why']}"
            self._failures.append(Failure(node, "", words, OWN))
            self._hasten()

    @staticmethod
    def _failure_of(node: int, failure: dict[str, Any]) -> Failure:
        facts = {key: value for key, value in failure.items() if key not in ("lines", "met")}
        return Failure(node, lines=tuple(failure["lines"]), **facts)

    def _end_all(self) -> None:
        """Ends the remaining processes of all groups, including helpers of roles that have ended, then frees the
        groups' numbers."""
        if self._stop.signal is not None:
            self._tell({"event": "stop", "why": f"was stopped by {signal.Signals(self._stop.signal).name}"})
        for number, patience in ((signal.SIGTERM, TERM_WAIT_S), (signal.SIGKILL, TERM_WAIT_S)):
            for process in (*self._replaced, *self._processes):
                signal_group(process.pid, number)
            deadline = time.monotonic() + patience
            while self._selector is not None and self._alive() and time.monotonic() < deadline:
                for key, _ in self._ended().select(POLL_S):
                    self._ended().unregister(key.fileobj)
                    self._note_end(key.data, by_launcher=True)
                self._hear()
        for process in (*self._replaced, *self._processes):
            os.close(process.handle)
            if process.outcome is None:
                process.outcome, process.failed = "could not be ended", True
            else:
                process.popen.wait()

    def _finish(self) -> None:
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

    def _merge_traces(self) -> None:
        """With --trace: merges the roles' traces, however the job ended. Never fails the launcher."""
        if self._trace is None or self._not_started is not None:
            return
        lines, error = merge(self._trace, self._job.rank)
        if error:
            say(error)
        for line in lines if not self._quiet else ():
            say(line, sys.stdout)

    def _where(self, node: int) -> str:
        return f" on node {node} ({self._job.nodes[node]})" if len(self._job.nodes) > 1 else ""

    def _report(self) -> int:
        if self._saved and self._last is not None:
            say(f"launch: stopped by SIGTERM {self._last.sentence()}")
            return 0
        if self._stop.signal is not None:
            say(f"launch: stopped by {signal.Signals(self._stop.signal).name}; all roles were ended")
            return self._stop.exit_code()
        if self._not_started is not None:
            code, what = self._not_started
            say(f"error: launch: {what}")
            return code
        cause = find_cause(self._failures, list(self._job.pservers), len(self._job.trainers))
        if not self._quiet:
            for line in table(read_receipts(self._job.log_dir, self._job.roles), self._job.pservers):
                say(line, sys.stdout)
        if cause is None:
            return 0
        failure = cause.failure
        if failure.who == JOB:
            say(f"error: launch: {failure.who} {failure.words}   [E-launch-hang]")
        elif failure.who:
            say(f"error: launch: {failure.who}{self._where(failure.node)} {failure.words}   [E-launch-role]")
        else:
            say(
                f"error: launch: node {failure.node} ({self._job.nodes[failure.node]}) {failure.words}   "
                "[E-launch-node]"
            )
        if failure.lines:
            say(f"  last lines of {failure.log}{self._where(failure.node)}:")
            for line in failure.lines:
                say(f"    {line}")
        for process in self._processes:
            if failure.node != self._job.rank or failure.who != name_of(process):
                say(f"  {process.role.name} {process.outcome}; its log is {process.log_path}")
        self._explain(cause)
        return EXIT_ROLE_FAILED

    def _explain(self, cause: Cause) -> None:
        """Prints the cause as the last line, with what the recordings of this machine's roles add to it."""
        if self._recordings.write(self._processes):
            say(f"  the last events of each role are in {os.path.join(self._job.log_dir, 'flight.*.jsonl')}")
        sentence = cause.sentence or (self._explained if cause.failure.who == JOB else "")
        if not sentence and cause.role:
            sentence = (
                explain_failure(self._recordings.take(self._processes), cause.role, cause.words)
                or f"{cause.role}{self._where(cause.failure.node)} {cause.words}"
            )
        if sentence:
            say(f"cause: {sentence}")


def run_job(job: Job, stop: Stop, cluster: None, registry: int, options: Namespace) -> int:
    """Starts this machine's roles of `job` and waits for the end of all. Returns the launcher's exit code.

    stop      a Stop whose handlers are installed
    cluster   the launchers of the other machines; None if there are none
    registry  a descriptor that receives the number of each process group (guard.py)
    options   grace_s: seconds that the other roles have after the first failure, and pservers after the last trainer
              has ended; quiet: print neither trainer 0's output nor the receipt; hang_timeout: seconds without progress
              after which the job ends, 0 for never; trace: the folder of the roles' traces, or None
    """
    return _Supervisor(job, stop, cluster, registry, options).run()
