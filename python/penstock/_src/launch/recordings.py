"""The recordings of the roles of this machine (flight.py), as they were at the first failure of the job.

recordings = Recordings(job)
recordings.look_for_stopped(alive)        # about every POLL_S seconds
recordings.take(processes)                # at the first failure; later calls return the same
recordings.write(processes)               # to flight.*.jsonl
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from penstock._src.launch.logs import say
from penstock._src.launch.role_process import flight_path, is_stopped

if TYPE_CHECKING:
    from collections.abc import Sequence

    from penstock._src.launch.flight import Recording
    from penstock._src.launch.plan import Job
    from penstock._src.launch.role_process import Process


STOPPED = "is stopped by a signal"
STOPPED_LOOK_S = 1.0
STOPPED_FOR_S = 60.0  # a connection breaks some 13 s after its peer was stopped


class Recordings:
    def __init__(self, job: Job) -> None:
        self._job = job
        self._taken: list[Recording] | None = None
        self._look_at = 0.0  # when to look next whether roles are stopped

    def look_for_stopped(self, alive: Sequence[Process]) -> None:
        """Notes once a second which processes a signal has stopped."""
        now = time.monotonic()
        if now < self._look_at:
            return
        self._look_at = now + STOPPED_LOOK_S
        for process in alive:
            if is_stopped(process.pid):
                process.stopped_at = now

    def take(self, processes: Sequence[Process]) -> list[Recording]:
        """Returns the recordings of all roles, as they were at the first call."""
        if self._taken is None:
            self._taken = [_recording(process) for process in processes]
        return self._taken

    def forget(self) -> None:
        """The job has recovered from its failure: the next call of take takes new ones."""
        self._taken = None

    def was_stopped(self, process: Process, processes: Sequence[Process]) -> bool:
        """Returns whether a signal had stopped the role shortly before the first failure."""
        state = next((one.state for one in self.take(processes) if one.role == process.role.name), "")
        return state == STOPPED or (
            process.stopped_at is not None and time.monotonic() - process.stopped_at < STOPPED_FOR_S
        )

    def write(self, processes: Sequence[Process]) -> bool:
        """Writes the recordings; returns whether any role has recorded something."""
        recordings = [
            (process, recording) for process, recording in zip(processes, self.take(processes)) if recording.events
        ]
        now = time.monotonic()
        for process, recording in recordings:
            try:
                recording.write(flight_path(self._job, process.role), now)
            except OSError as error:
                say(f"launch: {error}")
        return bool(recordings)


def _recording(process: Process) -> Recording:
    state = process.outcome or (STOPPED if is_stopped(process.pid) else "")
    return process.flight.read(process.role.name, process.role.address, state)
