"""How the roles ended.

The failure of one role often makes the others fail, and a pserver that only noticed it may end first. Therefore a role
reports on a pipe (PENSTOCK_LAUNCH_FD) that it received an error from a peer. blame.py derives the cause.
"""

from __future__ import annotations

import dataclasses
import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any


OWN = "own"  # the role failed by itself
REACTED = "reacted"  # it ended because a peer had failed
ENDED = "ended"  # the launcher ended it
JOB = "the job"  # the name of the whole job, used if it hangs
NOTE_MAX = 8192
PIPE_MAX = 65536
BACK = "back\t"
FIXED = "fixed\t"


@dataclasses.dataclass(frozen=True)
class Failure:
    """A role, or a whole machine, that failed."""

    node: int
    who: str  # "trainer 1 (pid 77)"; "": the machine; JOB: the whole job
    words: str  # "exited with code 1, 3.2 s after it was started"
    kind: str  # OWN, REACTED or ENDED
    log: str = ""
    lines: tuple[str, ...] = ()  # the last lines of the role's log
    role: str = ""  # "trainer 1"
    outcome: str = ""  # "exited with code 1"
    note: str = ""  # the error of a peer to which it reacted
    stopped: bool = False  # a signal had stopped it when the job's first failure was noticed


def read_failure(node: int, facts: Mapping[str, Any]) -> Failure:
    """Returns the Failure of a role of a machine that an event describes."""
    fields = {key: value for key, value in facts.items() if key not in ("lines", "met")}
    return Failure(node, lines=tuple(facts["lines"]), **fields)


@dataclasses.dataclass(frozen=True)
class Told:
    """What a role has reported on its pipe."""

    met: bool = False  # it has joined other processes of the job
    note: str = ""  # the error of a peer to which it reacted
    reacted: bool = False
    fixed: str = ""  # why it cannot be started again by itself


class Notes:
    """The pipe on which a role reports, one line each: "met" each time it has joined other ranks; "reacted", a tab and
    the error of a peer that ends it; "fixed", a tab and why it cannot be started again by itself; "back", a tab and
    what it has recovered, once it has done so after such a restart. A reaction before a meeting does not count: the
    role has recovered."""

    def __init__(self) -> None:
        self._listen, self.descriptor = os.pipe()
        os.set_blocking(self._listen, False)
        os.set_blocking(self.descriptor, False)  # a role never waits for the launcher
        self._inode = os.fstat(self.descriptor).st_ino
        self._text = b""
        self._pumped = 0  # characters of the text that pump has returned

    def environment(self) -> dict[str, str]:
        """Returns the variable that holds the pipe's descriptor and inode; by the inode, a process that did not inherit
        the pipe notices this and writes nothing."""
        return {"PENSTOCK_LAUNCH_FD": f"{self.descriptor}:{self._inode}"}

    def close_ours(self) -> None:
        """Closes the write end, which only the role needs."""
        os.close(self.descriptor)

    def _take(self) -> None:
        try:
            self._text += os.read(self._listen, NOTE_MAX - min(len(self._text), NOTE_MAX - 1))
        except BlockingIOError:
            pass

    def pump(self) -> list[str]:
        """Returns the lines that have arrived since the last call. What a role writes beyond 8 KB is ignored."""
        if len(self._text) < NOTE_MAX:
            self._take()
        end = self._text.rfind(b"\n") + 1
        begin, self._pumped = self._pumped, max(self._pumped, end)
        return self._text[begin : self._pumped].decode(errors="replace").splitlines()

    def read(self) -> Told:
        """Returns what the role has Told; closes the pipe."""
        try:
            self._text += os.read(self._listen, PIPE_MAX)
        except BlockingIOError:
            pass
        os.close(self._listen)
        lines = self._text.decode(errors="replace").split("\n")
        met = "met" in lines
        last = len(lines) - lines[::-1].index("met") if met else 0
        notes = [line.partition("\t")[2] for line in lines[last:] if line.startswith("reacted\t")]
        fixed = [line.removeprefix(FIXED) for line in lines if line.startswith(FIXED)]
        return Told(met, notes[0] if notes else "", bool(notes), fixed[0] if fixed else "")
