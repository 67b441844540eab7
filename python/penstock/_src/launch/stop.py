"""The request to end the launcher."""

from __future__ import annotations

import os
import signal
import time
from typing import TYPE_CHECKING, cast

from penstock._src.launch.guard import FORWARDED

if TYPE_CHECKING:
    from types import FrameType


# A signal to the launcher's process group arrives twice: the guard forwards its own.
SAME_SIGNAL_S = 0.5


class Stop:
    """The first signal that requested the launcher's end.

    signal   its number; None: there was none
    saves    set by the user of this object: a first SIGTERM asks for a last checkpoint, and only the next signal ends
    asked    whether it has asked for that
    """

    def __init__(self) -> None:
        self.signal: int | None = None
        self.saves = False
        self._asked_at: float | None = None
        self._parent = os.getppid()

    @property
    def asked(self) -> bool:
        return self._asked_at is not None

    def ask(self) -> None:
        """Asks for a last checkpoint, because the launcher of another machine was sent SIGTERM."""
        if self._asked_at is None:
            self._asked_at = time.monotonic()

    def install(self) -> None:
        for number in FORWARDED:
            signal.signal(number, self._on_signal)

    def exit_code(self) -> int:
        """Returns the exit code: 130 after Ctrl-C, as in a shell."""
        return 128 + cast(int, self.signal)

    def _on_signal(self, number: int, _frame: FrameType | None) -> None:
        now = time.monotonic()
        orphaned = os.getppid() != self._parent  # the kernel's signal: the guard was killed
        if number == signal.SIGTERM and self.saves and not orphaned:
            if self._asked_at is None:
                self._asked_at = now
                return
            if now - self._asked_at < SAME_SIGNAL_S:
                return
        self.signal = self.signal or number
