"""The request to end the launcher."""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING, cast

from penstock._src.launch.guard import FORWARDED

if TYPE_CHECKING:
    from types import FrameType


class Stop:
    """The first signal that requested the launcher's end."""

    def __init__(self) -> None:
        self.signal: int | None = None

    def install(self) -> None:
        for number in FORWARDED:
            signal.signal(number, self._on_signal)

    def exit_code(self) -> int:
        """Returns the exit code: 130 after Ctrl-C, as in a shell."""
        return 128 + cast(int, self.signal)

    def _on_signal(self, number: int, _frame: FrameType | None) -> None:
        self.signal = self.signal or number
