"""Runs the roles of a job on this machine to their end.

Each role is the leader of its own process group and dies with the launcher (the kernel's parent-death signal). The
launcher does not call wait(2) for a role before its group has ended: see guard.py. The first failure starts a grace
period, in which the others report what they noticed; then they are ended. The launchers of other machines are informed
of each end and of each failure (cluster.py), and do the same.
"""

from __future__ import annotations

import contextlib
import dataclasses
import signal
import time
from typing import TYPE_CHECKING, cast

from penstock._src.launch.cause import explain_hang
from penstock._src.launch.console import Console
from penstock._src.launch.elastic import make_elastic
from penstock._src.launch.errors import JobError
from penstock._src.launch.guard import signal_group
from penstock._src.launch.last_checkpoint import LastCheckpoint, can_stop
from penstock._src.launch.logs import say
from penstock._src.launch.outcome import ENDED, JOB, OWN, REACTED, Failure, read_failure
from penstock._src.launch.processes import POLL_S, Processes, StartError
from penstock._src.launch.recordings import Recordings
from penstock._src.launch.report import EXIT_ROLE_FAILED, failure_of, merge_traces, print_receipts, report_end
from penstock._src.launch.restarts import Restarts, say_what_is_back
from penstock._src.launch.role_process import describe_end
from penstock._src.launch.scaling import Scaling

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Callable, Iterator
    from typing import Any

    from penstock._src.launch.link import Link
    from penstock._src.launch.plan import Job, Role
    from penstock._src.launch.role_process import Process
    from penstock._src.launch.stop import Stop


EXIT_NOT_STARTED = 2
GRACE_S = 15.0
GRACE_ALONE_S = 5.0  # if no other role can have noticed the failure
TERM_WAIT_S = 3.0
FINISH_S = 30.0  # after a failed job, the time to wait for the reports of the other machines


@dataclasses.dataclass(frozen=True)
class _End:
    """The end of a process, as far as this machine knows it."""

    process: Process
    event: dict[str, Any]
    completes: bool  # a trainer has ended well
    hastens: bool  # the other roles have a grace period
    met: bool  # they can notice the failure


class Supervisor:
    """Starts this machine's roles of `job` and waits for the end of all.

    stop      a Stop whose handlers are installed
    cluster   the launchers of the other machines; None if there are none
    registry  a descriptor that receives the number of each process group (guard.py)
    options   those of the command line
    remake    returns the job with another number of pservers (scaling.py); None: their number does not change
    """

    def __init__(
        self,
        job: Job,
        stop: Stop,
        cluster: None,
        registry: int,
        options: Namespace,
        remake: Callable[[int, int, int], Job] | None,
    ) -> None:
        self._job = job
        self._stop = stop
        self._cluster = cluster  # None: a job on this machine only
        self._options = options
        self._recordings = Recordings(job)
        self._explained = ""  # the sentence derived from the recordings
        self._console = Console("none" if options.quiet else options.console)
        self._processes = Processes(registry, self._console)
        limits = {"pserver": job.role_restarts, "trainer": job.trainer_restarts}
        self._restarts = Restarts(limits, job.shrinks, self._report_to_all)
        self._complete = False  # a trainer has ended well
        self._last = LastCheckpoint(job.roles[0].environment, stop) if can_stop(job) else None
        self._asked = False  # the other launchers know that SIGTERM has come
        self._saved = ""  # how the job continues from its last checkpoint, once that is there: the job may end
        self._failures: list[Failure] = []  # failures of all machines, in the same order on each
        self._elastic = make_elastic(options, job, self._tell)
        self._undecided: dict[int, _End] = {}  # by rank: ends of elastic ranks of which the others have yet to learn
        self._scaling = Scaling(job, remake)
        self._trainers_elsewhere = job.trainers_elsewhere
        self._deadline: float | None = None  # deadline for the end of the other roles
        self._not_started: tuple[int, str] | None = None  # the exit code, if a role could not be started, and why

    def run(self) -> int:
        """Returns the launcher's exit code."""
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
            self._scaling.close()
        self._console.pump(last=True)
        self._finish()
        if self._not_started is None:
            merge_traces(self._options.trace, self._job.rank, self._options.quiet)
        return self._report()

    @contextlib.contextmanager
    def _starting(self) -> Iterator[None]:
        """If a role cannot be started, the job ends."""
        try:
            yield
        except (JobError, OSError) as error:
            code = EXIT_ROLE_FAILED if isinstance(error, (StartError, OSError)) else EXIT_NOT_STARTED
            self._not_started = code, str(error)
            self._tell({"event": "stop", "why": str(error)})
            self._deadline = time.monotonic()

    def _start_all(self) -> None:
        with self._starting():
            self._processes.open()
            for role in self._job.roles:
                self._processes.start(role, self._job, self._link_of(role))

    def _start_again(self, ended: Process) -> None:
        """Starts the role of an ended process again, by itself."""
        with self._starting():
            self._processes.start_again(ended, self._job, self._link_of(ended.role))

    def _link_of(self, role: Role) -> Link | None:
        return self._elastic.begins(role) if self._elastic is not None else None

    def _scale(self) -> None:
        """Changes the number of pservers, if that is asked for."""
        why_not = "the job is about to end   [E-scale-ended]" if self._stop.asked or self._complete else ""
        job = self._scaling.pump(why_not) if self._deadline is None else None
        if job is None:
            return
        with self._starting():
            self._restarts.forget(self._processes.retire(job))  # they may end, or be ended
            self._job = job
            self._last = LastCheckpoint(job.roles[0].environment, self._stop)
            for role in job.roles:
                if role.kind == "pserver":
                    self._processes.start(role, job)
            self._scaling.go(job)

    def _watch(self) -> None:
        while (
            self._processes.alive() or self._restarts.pending() or self._expects_rank()
        ) and self._stop.signal is None:
            if self._deadline is not None:
                self._restarts.drop()
                if time.monotonic() > self._deadline:
                    return
            for ended in self._restarts.due(time.monotonic()):
                self._start_again(ended)
            for process in self._processes.take_ended():
                self._note_end(process)
            self._hear()
            for process in self._processes.alive():
                say_what_is_back(process, self._report_to_all)
            self._restart_ranks()
            self._console.pump()
            self._recordings.look_for_stopped(self._processes.alive())
            for process in [] if self._failures else self._restarts.take_late(self._processes.last):
                signal_group(process.pid, signal.SIGKILL)
            self._end_if_hung()
            self._scale()
            self._processes.end_retired(self._scaling.has_moved)
            if self._last is None or self._deadline is not None or self._scaling.is_busy():
                continue
            if self._is_saved(self._last):
                return

    def _is_saved(self, last: LastCheckpoint) -> bool:
        """Returns whether the job has been asked to stop and its last checkpoint is there. Whichever launcher has got
        SIGTERM, that of node 0 asks the pservers."""
        if self._stop.asked and not self._asked:
            self._asked = True
            if self._cluster is not None:
                self._tell({"event": "asked"})
        if self._job.rank == 0 and last.saved():
            self._saved = last.sentence()
            if self._cluster is not None:
                self._tell({"event": "saved", "why": self._saved})
        return bool(self._saved)

    def _expects_rank(self) -> bool:
        return self._elastic is not None and (self._elastic.expects() or bool(self._undecided))

    def _restart_ranks(self) -> None:
        """Starts the ranks that are to be restarted, after the helpers of their earlier processes have been ended."""
        due = self._elastic.pump(time.monotonic()) if self._elastic is not None else []
        for role in due if self._deadline is None else ():
            ended = next(process for process in self._processes.last if process.role is role)
            signal_group(ended.pid, signal.SIGKILL)
            self._start_again(ended)

    def _on_rank(self, event: dict[str, Any]) -> None:
        """Applies what a launcher has told of an elastic rank."""
        if self._elastic is None or (goes_on := self._elastic.apply(event, time.monotonic())) is None:
            return
        undecided = self._undecided.pop(event["rank"], None) if event["node"] == self._job.rank else None
        if goes_on:
            self._recordings.forget()
            return
        self._failures.extend(self._elastic.take_lost())
        if undecided is not None:
            self._conclude(undecided)

    def _goes_on_without(self, node: int, words: str) -> bool:
        """Returns whether elastic ranks go on after a machine is gone."""
        if self._elastic is None or self._deadline is not None:
            return False
        goes_on = self._elastic.lose(node, words, time.monotonic())
        self._failures.extend([] if goes_on else self._elastic.take_lost())
        return goes_on

    def _end_if_hung(self) -> None:
        progress, now = self._processes.progress(), time.monotonic()
        if self._options.hang_timeout <= 0 or progress is None or self._deadline is not None or self._stop.asked:
            return
        if now - progress < self._options.hang_timeout:
            return
        self._explained = explain_hang(self._recordings.take(self._processes.last), now)
        self._tell({"event": "hang", "why": f"has made no progress for {now - progress:.0f} s"})
        self._deadline = now  # no role can end by itself

    def _hasten(self, met: bool = True) -> None:
        """Starts the grace period of the other roles at the first call; `met`: whether they can notice the failure."""
        if self._deadline is not None:
            return
        self._recordings.take(self._processes.last)
        usual = GRACE_S if met else GRACE_ALONE_S
        self._deadline = time.monotonic() + (usual if self._options.grace_s is None else self._options.grace_s)

    def _note_end(self, process: Process, by_launcher: bool = False) -> None:
        code = cast(int, process.poll())
        words, failed = describe_end(code)
        if self._processes.is_retired(process):
            process.outcome = words
            return
        after = time.monotonic() - process.started
        say_what_is_back(process, self._report_to_all)
        told = process.notes.read()
        goes_on = self._deadline is None and self._stop.signal is None
        if failed and not by_launcher and goes_on and self._restarts.take(process, told, self._complete):
            return
        process.outcome = f"was ended by the launcher ({words})" if by_launcher else words
        left_out = failed and not by_launcher and self._restarts.leave_out(process, told, self._complete)
        process.failed = (failed or by_launcher) and not left_out
        process.failed_by = code if failed else None
        if process.failed and not self._failures:
            self._recordings.take(self._processes.last)
        kind = REACTED if told.reacted else ENDED if by_launcher else OWN
        met = told.met or told.reacted or process.flight.met()
        event: dict[str, Any] = {"event": "end", "kind": process.role.kind, "failure": None}
        if process.failed:
            stopped = self._recordings.was_stopped(process, self._processes.last)
            words = f"{process.outcome}, {after:.1f} s after it was started"
            event["failure"] = {
                **failure_of(process, words),
                "kind": kind,
                "note": told.note,
                "stopped": stopped,
                "met": met,
            }
        completes = process.role.kind == "trainer" and not process.failed and not left_out
        # Where roles are restarted, the others wait for this one.
        hastens = not by_launcher and process.failed
        end = _End(process, event, completes, hastens, met and not self._restarts.concerns(process))
        if by_launcher or self._elastic is None or self._deadline is not None:
            self._conclude(end)
            return
        self._undecided[process.role.index] = end
        self._elastic.ends(process.role, event["failure"])

    def _conclude(self, end: _End) -> None:
        """Tells of an end that is final."""
        self._restarts.note_end(end.process)
        self._complete = self._complete or end.completes
        self._tell(end.event)
        if end.hastens:
            self._hasten(end.met)
        self._end_servers_in_time()

    def _end_servers_in_time(self) -> None:
        """Pservers end by themselves once every trainer has completed. Ends a pserver that does not, and reports it."""
        present = [*self._processes.alive(), *self._restarts.pending()]
        if self._trainers_elsewhere <= 0 and not any(p.role.kind == "trainer" for p in present):
            self._hasten()

    def _report_to_all(self, line: str) -> None:
        """Prints a line here and, with the name of this machine, where the other launchers print."""
        say(line)
        if self._cluster is not None:
            self._cluster.tell({"event": "report", "why": line})

    def _tell(self, event: dict[str, Any]) -> None:
        if self._cluster is None:
            self._on_event({**event, "node": self._job.rank})
        else:
            self._cluster.tell(event)

    def _hear(self) -> None:
        if self._cluster is not None:
            for event in self._cluster.pump():
                self._on_event(event)

    def _on_event(self, event: dict[str, Any]) -> None:
        node = event["node"]
        if event["event"] == "end":
            failure = event["failure"]
            if failure is not None:
                self._failures.append(read_failure(node, failure))
            if node != self._job.rank:
                self._trainers_elsewhere -= event["kind"] == "trainer"
                self._complete = self._complete or (event["kind"] == "trainer" and failure is None)
                if failure is not None:
                    self._hasten(failure["met"])
                self._end_servers_in_time()
        elif event["event"] == "rank":
            self._on_rank(event)
        elif event["event"] == "asked":
            self._asked = True
            self._stop.ask()
        elif event["event"] == "saved":
            self._saved = event["why"]
        elif event["event"] == "report":
            if node != self._job.rank:
                say(f"launch: node {node} ({self._job.nodes[node]}): {event['why'].removeprefix('launch: ')}")
        elif event["event"] == "hang":
            self._failures.append(Failure(node, JOB, event["why"], OWN))
            self._hasten()
        elif event["event"] in ("stop", "lost"):
            words = event["why"] if event["event"] == "stop" else f"is gone: {event['why']}"
            if event["event"] == "lost" and self._goes_on_without(node, words):
                return
            self._failures.append(Failure(node, "", words, OWN))
            self._hasten()

    def _end_all(self) -> None:
        """Ends the remaining processes of all groups, including helpers of roles that have ended, then frees the
        groups' numbers."""
        if self._stop.signal is not None:
            self._tell({"event": "stop", "why": f"was stopped by {signal.Signals(self._stop.signal).name}"})
        for number, patience in ((signal.SIGTERM, TERM_WAIT_S), (signal.SIGKILL, TERM_WAIT_S)):
            self._processes.signal(number)
            deadline = time.monotonic() + patience
            while self._processes.any_alive() and time.monotonic() < deadline:
                for process in self._processes.take_ended():
                    self._note_end(process, by_launcher=True)
                self._hear()
        self._processes.release()

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

    def _report(self) -> int:
        if self._saved:
            say(f"launch: stopped by SIGTERM {self._saved}")
            return 0
        if self._stop.signal is not None:
            say(f"launch: stopped by {signal.Signals(self._stop.signal).name}; all roles were ended")
            return self._stop.exit_code()
        if self._not_started is not None:
            code, what = self._not_started
            say(f"error: launch: {what}")
            return code
        if not self._options.quiet:
            print_receipts(self._job)
        return report_end(self._job, self._processes.last, self._failures, self._recordings, self._explained)
