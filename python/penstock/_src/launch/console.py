"""The roles' output on the terminal of the launcher."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, BinaryIO

from penstock._src.launch.logs import say

if TYPE_CHECKING:
    from penstock._src.launch.role_process import Process


class Console:
    """What of the roles' output is shown. `which`: "all", "first" (trainer 0) or "none"."""

    def __init__(self, which: str) -> None:
        self._which = which
        self._echoes: list[Echo] = []

    def begins(self, process: Process) -> None:
        role = process.role
        if self._which == "all":
            self._echoes.append(Echo(process.log_path, process.log_begin, f"[{role.name}] "))
        elif self._which == "first" and role.kind == "trainer" and role.index == 0:
            self._echoes.append(Echo(process.log_path, process.log_begin))

    def pump(self, last: bool = False) -> None:
        """Copies the new text of each."""
        for echo in self._echoes:
            echo.pump(last)


class Echo:
    """Copies to the terminal the text that a role has written to its log since the last call.

    path    the log
    begin   the position in the log at which copying starts
    prefix  precedes each line, so that lines of several roles can be distinguished; "": the text is copied unchanged
    """

    def __init__(self, path: str, begin: int = 0, prefix: str = "") -> None:
        try:
            self._log: BinaryIO | None = open(path, "rb")  # closed with the process
            self._log.seek(begin)
        except OSError as error:
            say(f"launch: {path} cannot be shown: {error.strerror or error}")
            self._log = None
        self._prefix = prefix
        self._rest = b""

    def pump(self, last: bool = False) -> None:
        """Copies new text. With a prefix it copies only whole lines, except in the `last` call."""
        if self._log is None:
            return
        text = self._rest + self._log.read()
        self._rest = b""
        if self._prefix and not last:
            text, newline, self._rest = text.rpartition(b"\n")
            text += newline
        if not text:
            return
        shown = text.decode(errors="replace")
        if self._prefix:
            shown = "".join(f"{self._prefix}{line}\n" for line in shown.splitlines())
        try:
            sys.stdout.write(shown)
            sys.stdout.flush()
        except BrokenPipeError:
            raise
        except (OSError, ValueError) as error:  # on a full disk, or closed: the job goes on without it
            self._log = None
            say(f"launch: the terminal takes no output: {error}")
