"""Processes that exchange numbers through files in a shared folder."""

from __future__ import annotations

import json
import logging
import os
import time

from penstock import _penstock

_LOOK_S = 0.02
_REPORT_S = 10

_log = logging.getLogger("penstock.fluid.incubate.fleet.base._file_group")


class FileGroup:
    """One process of the group. All call the same operations in the same order.

    folder   a folder of this job only, because files of an earlier job would be mistaken for files of this job
    rank     the number of this process, below size
    timeout  seconds to wait for the other processes
    """

    def __init__(self, folder: str, rank: int, size: int, timeout: int) -> None:
        self._folder, self._rank, self._size, self._timeout = folder, rank, size, timeout
        self._round = 0

    def barrier(self, timeout: int | None = None) -> None:
        """Waits until all processes have called it."""
        self.all_gather(0, timeout)

    def all_gather(self, value: float, timeout: int | None = None) -> list[float]:
        """Returns the values of all processes in the order of their ranks. A value must be representable in JSON."""
        self._round += 1
        folder = os.path.join(self._folder, f"round{self._round}")
        os.makedirs(folder, exist_ok=True)
        own = os.path.join(folder, str(self._rank))
        with open(own + ".partial", "w") as file:
            json.dump(value, file)
        os.replace(own + ".partial", own)
        return [self._await(folder, rank, self._timeout if timeout is None else timeout) for rank in range(self._size)]

    def _await(self, folder: str, rank: int, timeout: int) -> float:
        path, began, report = os.path.join(folder, str(rank)), time.monotonic(), _REPORT_S
        while not os.path.exists(path):
            waited = time.monotonic() - began
            if waited > timeout:
                error = _penstock.PeerError(
                    f"fleet: process {rank} of {self._size} has not written {path} within {timeout:g} s   "
                    "[E-fleet-files]"
                )
                error.id, error.details = "E-fleet-files", []
                raise error
            if waited > report:
                _log.warning("waiting %d s for process %d of %d, which is to write %s", waited, rank, self._size, path)
                report *= 2
            time.sleep(_LOOK_S)
        with open(path) as file:
            value: float = json.load(file)
            return value
