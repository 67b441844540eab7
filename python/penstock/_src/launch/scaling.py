"""A job whose number of pservers changes while it trains (`penstock scale`), between two steps:

    asked      trainers agree on a step, and wait once they have ended it (base/move_files.py)
    cut        the pservers save what they hold after it, and stop
    started    as many others as asked for restore it; trainers complete at the old ones and go on with them

    scaling = make_scaling(job, remake)
    job = scaling.pump(why_not)     # about every POLL_S seconds; a job to start pservers of, and then scaling.go()

A role that dies meanwhile is started again as at any other time: the old pservers keep what they hold until all of it
is saved. Only then does anything depend on the new ones.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from penstock._src.base.move_files import MoveFiles
from penstock._src.launch.last_checkpoint import StopCut, can_stop
from penstock._src.launch.logs import say
from penstock._src.launch.scale_files import Requests

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from penstock._src.launch.plan import Job


MOVES_MAX = 15  # JobClient::kProgramsMax, of which the first pservers count as one
SERVERS_MAX = 1024


def scale_settings(environment: Mapping[str, str], moves: int = 0) -> dict[str, str]:
    """Returns the variables of roles whose pservers may be replaced; `environment`: those that they have already."""
    return {"PENSTOCK_MOVES": str(moves)} if "PENSTOCK_CHECKPOINT_STEPS" in environment else {}


class Scaling:
    """The requests to one launcher. `remake`: returns the job with other pservers, that continues after a step, as
    (number of pservers, step, number of the request)."""

    def __init__(self, job: Job, remake: Callable[[int, int, int], Job] | None) -> None:
        self._job, self._remake = job, remake
        self._requests = Requests(job.log_dir)
        self._files = MoveFiles(job.roles[0].environment) if can_stop(job) else None
        if self._files is not None:
            self._files.clear()
        self._number = 0  # of the last request
        self._name, self._servers = "", 0  # of the one in progress; "": there is none
        self._cut: StopCut | None = None
        self._held = 0.0  # since when all trainers wait
        self._gone = 0  # the number of the last request that was granted

    def is_busy(self) -> bool:
        return bool(self._name)

    def has_moved(self, trainer: int) -> bool:
        """Returns whether a trainer that had the earlier pservers needs them no more."""
        facts = None if self._files is None else self._files.read(f"moved-{trainer}")
        return facts is not None and int(facts["number"]) >= self._gone

    def close(self) -> None:
        self._requests.close()
        if self._files is not None:
            self._files.clear()

    def pump(self, why_not: str) -> Job | None:
        """Returns the job whose pservers are to be started, once all that they need is saved.

        why_not  why the number of pservers cannot change at present, with the error's id; "": it can
        """
        asked = self._requests.take()
        if asked is not None:
            self._begin(*asked, why_not)
        if not self._name or self._files is None:
            return None
        try:
            return self._advance(self._files, why_not)
        except OSError as error:
            self._cancel(f"{error}   [E-scale-files]")
            return None

    def go(self, job: Job) -> None:
        """The new pservers have been started: trainers go on with them. Raises OSError."""
        files, cut = self._files, self._cut
        if files is None or cut is None:
            return
        files.write("go", self._number, pservers=list(job.pservers))
        self._end(
            f"launch: {len(job.pservers)} instead of {len(self._job.pservers)} pservers after step {cut.step}; the "
            f"trainers waited {time.monotonic() - self._held:.1f} s for them",
            False,
        )
        self._job, self._gone = job, self._number

    def _begin(self, servers: int, name: str, why_not: str) -> None:
        refusal = self._refusal(servers) or why_not
        if refusal or self._files is None:
            self._requests.answer(name, f"error: scale: {refusal}", True)
            return
        self._name, self._servers, self._number, self._cut = name, servers, self._number + 1, None
        try:
            self._files.write("request", self._number)
        except OSError as error:
            self._end(f"error: scale: {error}   [E-scale-files]", True)
            return
        say(f"launch: {servers} instead of {len(self._job.pservers)} pservers are asked for")

    def _refusal(self, servers: int) -> str:
        job = self._job
        if self._name:
            return f"the number of pservers is just changing to {self._servers}   [E-scale-busy]"
        if not job.pservers or self._remake is None:
            return "the job has no pservers that this launcher has started   [E-scale-mode]"
        if len(job.nodes) > 1:
            return f"the job has {len(job.nodes)} machines; the number changes on one only   [E-scale-mode]"
        if self._files is None:
            return "the job makes no checkpoints: give it --checkpoint_dir and --checkpoint_steps   [E-scale-mode]"
        if job.shrinks:
            return "trainers may be missing with --on_trainer_loss shrink; use wait   [E-scale-mode]"
        if servers == len(job.pservers):
            return f"the job has {servers} pservers already   [E-scale-servers]"
        if not 1 <= servers <= SERVERS_MAX:
            return f"{servers} is no number of pservers from 1 to {SERVERS_MAX}   [E-scale-servers]"
        if self._number >= MOVES_MAX:
            return f"this job has had {MOVES_MAX} such requests; stop it, and resume it with others   [E-scale-busy]"
        return ""

    def _advance(self, files: MoveFiles, why_not: str) -> Job | None:
        if self._cut is not None:
            return self._started(self._cut)
        limits = files.of_trainers("limit", self._number)
        refused = [facts["error"] for facts in limits if "error" in facts]
        closed = any(files.read(f"closed-{trainer}") for trainer in range(files.trainers))
        if refused or why_not or closed:
            why = "a trainer has completed, and the others are about to   [E-scale-ended]"
            self._cancel(refused[0] if refused else why_not or why)
            return None
        there = files.of_trainers("there", self._number)
        if len(there) < files.trainers:
            return None
        self._held = time.monotonic()
        environment = self._job.roles[0].environment
        step = int(environment.get("PENSTOCK_RESUME_STEP", "0")) + max(facts["step"] for facts in there)
        self._cut = StopCut(environment)
        self._cut.ask(step)
        return None

    def _started(self, cut: StopCut) -> Job | None:
        if not cut.is_whole() or cut.step is None or self._remake is None:
            return None
        cut.forget()
        return self._remake(self._servers, cut.step, self._number)

    def _cancel(self, why: str) -> None:
        """Lets the trainers go on as they are."""
        if self._files is not None:
            try:
                self._files.write("go", self._number, error=why)
            except OSError as error:
                say(f"launch: the trainers cannot be told to go on: {error}")
        self._end(f"error: scale: {why}", True)

    def _end(self, line: str, failed: bool) -> None:
        say(line)
        self._requests.answer(self._name, line, failed)
        self._name = ""
