"""Determines how the roles ended, and which role caused a failure.

The failure of one role often makes the others fail, and a pserver that only noticed it may end first. Therefore a role
reports on a pipe (PENSTOCK_LAUNCH_FD) that it received an error from a peer. The cause is the first failure of a role
without such a report.
"""

import dataclasses
import os

OWN = "own"  # the role failed by itself
REACTED = "reacted"  # it ended because a peer had failed
ENDED = "ended"  # the launcher ended it
JOB = "the job"  # the name of the whole job, used if it hangs
NOTE_MAX = 8192
LINES_MAX_BYTES = 8192


@dataclasses.dataclass(frozen=True)
class Failure:
    """A role, or a whole machine, that failed."""

    node: int
    who: str  # "trainer 1 (pid 77)"; "": the machine; JOB: the whole job
    words: str  # "exited with code 1"
    kind: str  # OWN, REACTED or ENDED
    log: str = ""
    lines: tuple = ()  # the last lines of the role's log


def pick_cause(failures):
    """Returns the failure to report first, or None."""
    for kind in (OWN, REACTED, ENDED):
        for failure in failures:
            if failure.kind == kind:
                return failure
    return None


class Notes:
    """The pipe on which a role reports an error of a peer: "reacted", a tab, the error."""

    def __init__(self):
        self._listen, self.descriptor = os.pipe()
        os.set_blocking(self._listen, False)
        os.set_blocking(self.descriptor, False)  # a role never waits for the launcher
        self._inode = os.fstat(self.descriptor).st_ino

    def environment(self):
        """Returns the variable that holds the pipe's descriptor and inode; by the inode, a process that did not inherit
        the pipe notices this and writes nothing."""
        return {"PENSTOCK_LAUNCH_FD": f"{self.descriptor}:{self._inode}"}

    def close_ours(self):
        """Closes the write end, which only the role needs."""
        os.close(self.descriptor)

    def read_reacted(self):
        """Returns whether the role has reported an error of a peer; closes the pipe."""
        try:
            text = os.read(self._listen, NOTE_MAX)
        except BlockingIOError:
            text = b""
        os.close(self._listen)
        return text.startswith(b"reacted\t")


def last_lines(path, count):
    """Returns the last lines of a log, at most 8 KB."""
    with open(path, "rb") as log:
        log.seek(0, os.SEEK_END)
        log.seek(max(0, log.tell() - LINES_MAX_BYTES))
        return log.read().decode(errors="replace").splitlines()[-count:]
