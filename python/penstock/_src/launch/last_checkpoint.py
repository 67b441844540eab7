"""The last checkpoint of pservers that are asked to stop: they agree on their last step through files beside the job's
checkpoints (executor/checkpoint/stop_request.h).

    last = LastCheckpoint(job.roles[0].environment, stop)
    last.saved()                  # asks the pservers once SIGTERM has come; whether the job can be ended
    last.sentence()               # how to continue
"""

from __future__ import annotations

import os
import shutil
import signal
from typing import TYPE_CHECKING

from penstock import _penstock
from penstock._src.launch.logs import say

if TYPE_CHECKING:
    from collections.abc import Mapping

    from penstock._src.launch.plan import Job
    from penstock._src.launch.stop import Stop


def can_stop(job: Job) -> bool:
    """Returns whether the job makes checkpoints."""
    return bool(job.pservers) and "PENSTOCK_CHECKPOINT_STEPS" in job.roles[0].environment


class StopCut:
    """The request to the pservers, and their answers. `environment`: that of any role of the job."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self.asked = False
        self.folder = environment["PENSTOCK_CHECKPOINT_DIR"]
        first = environment.get("PENSTOCK_RESUME_STEP", "0")
        # As CheckpointsFromEnvironment makes it (executor/process/grpc_server.cc).
        self._run = f"{environment['PENSTOCK_JOB_ID']}.{environment['PENSTOCK_RESTART_COUNT']}.{first}"
        self._servers = len(environment["PADDLE_PSERVERS_IP_PORT_LIST"].split(","))
        self._requests = os.path.join(self.folder, "stop")
        self.step: int | None = None  # the last one; None: not known yet

    def ask(self, least: int = 0) -> None:
        """Asks them to stop, after the step `least` at the earliest. Raises OSError."""
        self.asked = True
        self.forget()
        os.makedirs(self._requests)
        for name, text in (("least", f"{self._run}\n{least}\n"), ("request", self._run + "\n")):
            path = os.path.join(self._requests, name)
            with open(path + ".new", "w") as file:
                file.write(text)
            os.rename(path + ".new", path)

    def is_whole(self) -> bool:
        """Returns whether all that the pservers hold after the last step is saved."""
        if self.step is None:
            self.step = self._last_step()
        if self.step is None:
            return False
        try:
            newest = _penstock.newest_checkpoint(self.folder)
        except _penstock.DataError:  # only parts of one
            return False
        return (newest or 0) >= self.step

    def forget(self) -> None:
        """Removes the request and its answers, if there are any."""
        if self.asked:
            shutil.rmtree(self._requests, ignore_errors=True)

    def _last_step(self) -> int | None:
        steps = []
        for name in ("least", *(f"part-{server}-of-{self._servers}" for server in range(self._servers))):
            try:
                with open(os.path.join(self._requests, name)) as file:
                    run, step, end = file.read().split("\n")
            except (OSError, ValueError):
                return None
            if run != self._run or end:
                return None
            steps.append(int(step))
        return max(steps)


class LastCheckpoint:
    """That of a job which SIGTERM stops. `environment`: that of any role of the job."""

    def __init__(self, environment: Mapping[str, str], stop: Stop) -> None:
        self._stop = stop
        self._cut = StopCut(environment)

    def saved(self) -> bool:
        """Returns whether all that the pservers hold after the last step is saved; False before SIGTERM."""
        if not self._stop.asked:
            return False
        if not self._cut.asked:
            say("launch: SIGTERM: the pservers save the next complete step; a second SIGTERM ends the job at once")
            try:
                self._cut.ask()
            except OSError as error:
                say(f"launch: no last checkpoint: {error}")
                self._stop.signal = signal.SIGTERM
        return self._cut.is_whole()

    def sentence(self) -> str:
        step, folder = self._cut.step, self._cut.folder
        if not step:
            return "before its first step was complete; start it again"
        return (
            f"after step {step}; its checkpoint is {os.path.join(folder, f'step-{step}')}; the same "
            "command with --resume continues it"
        )

    def forget(self) -> None:
        """Removes the request and its answers, if there are any."""
        self._cut.forget()
