"""The last checkpoint of a job that is asked to stop: the pservers agree on the job's last step through files beside
its checkpoints (executor/checkpoint/stop_request.h).

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


class LastCheckpoint:
    """`environment`: that of any role of the job."""

    def __init__(self, environment: Mapping[str, str], stop: Stop) -> None:
        self._stop = stop
        self._asked = False
        self._folder = environment["PENSTOCK_CHECKPOINT_DIR"]
        first = environment.get("PENSTOCK_RESUME_STEP", "0")
        # As CheckpointsFromEnvironment makes it (executor/process/grpc_server.cc).
        self._run = f"{environment['PENSTOCK_JOB_ID']}.{environment['PENSTOCK_RESTART_COUNT']}.{first}"
        self._servers = len(environment["PADDLE_PSERVERS_IP_PORT_LIST"].split(","))
        self._requests = os.path.join(self._folder, "stop")
        self.step: int | None = None  # the job's last one; None: not known yet

    def saved(self) -> bool:
        """Returns whether all that the pservers hold after the last step is saved; False before SIGTERM."""
        if not self._stop.asked:
            return False
        if not self._asked:
            self._asked = True
            say("launch: SIGTERM: the pservers save the next complete step; a second SIGTERM ends the job at once")
            try:
                self._ask()
            except OSError as error:
                say(f"launch: no last checkpoint: {error}")
                self._stop.signal = signal.SIGTERM
        if self.step is None:
            self.step = self._last_step()
        if self.step is None:
            return False
        try:
            newest = _penstock.newest_checkpoint(self._folder)
        except _penstock.DataError:  # only parts of one
            return False
        return (newest or 0) == self.step

    def sentence(self) -> str:
        if not self.step:
            return "before its first step was complete; start it again"
        return (
            f"after step {self.step}; its checkpoint is {os.path.join(self._folder, f'step-{self.step}')}; the same "
            "command with --resume continues it"
        )

    def forget(self) -> None:
        """Removes the request and its answers, if there are any."""
        if self._asked:
            shutil.rmtree(self._requests, ignore_errors=True)

    def _ask(self) -> None:
        self.forget()
        os.makedirs(self._requests)
        path = os.path.join(self._requests, "request")
        with open(path + ".new", "w") as file:
            file.write(self._run + "\n")
        os.rename(path + ".new", path)

    def _last_step(self) -> int | None:
        steps = []
        for server in range(self._servers):
            try:
                with open(os.path.join(self._requests, f"part-{server}-of-{self._servers}")) as file:
                    run, step, end = file.read().split("\n")
            except (OSError, ValueError):
                return None
            if run != self._run or end:
                return None
            steps.append(int(step))
        return max(steps)
