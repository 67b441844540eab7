"""What became of the roles, and which of them was the cause.

A failed role often takes the others with it, and a pserver that only noticed it may well end first. So a role says on
a pipe (PENSTOCK_LAUNCH_FD) when it gets an error that came from a peer. The cause is the first failure of a role that
said no such thing.
"""

import dataclasses
import os

OWN = "own"  # the role failed by itself
REACTED = "reacted"  # it ended because a peer had failed
ENDED = "ended"  # the launcher ended it
JOB = "the job"  # who failed, if it is no role alone: it hangs
NOTE_MAX = 8192
LINES_MAX_BYTES = 8192


@dataclasses.dataclass(frozen=True)
class Failure:
    """A role, or a whole machine, that did not end well."""

    node: int
    who: str  # "trainer 1 (pid 77)"; "" if it is the machine, JOB if it is the job
    words: str  # "exited with code 1"
    kind: str  # OWN, REACTED or ENDED
    log: str = ""
    lines: tuple = ()  # the last ones of its log


def pick_cause(failures):
    """The failure to tell first; None if there is none."""
    for kind in (OWN, REACTED, ENDED):
        for failure in failures:
            if failure.kind == kind:
                return failure
    return None


class Notes:
    """The pipe on which a role says that it has an error of a peer: "reacted", a tab, the error."""

    def __init__(self):
        self._listen, self.descriptor = os.pipe()
        os.set_blocking(self._listen, False)
        os.set_blocking(self.descriptor, False)  # a role never waits for the launcher
        self._inode = os.fstat(self.descriptor).st_ino

    def environment(self):
        """Names the pipe and its inode, so that a process which did not inherit it writes nowhere else."""
        return {"PENSTOCK_LAUNCH_FD": f"{self.descriptor}:{self._inode}"}

    def close_ours(self):
        """The writing end is the role's alone."""
        os.close(self.descriptor)

    def read_reacted(self):
        """Whether the role has said so; closes the pipe."""
        try:
            text = os.read(self._listen, NOTE_MAX)
        except BlockingIOError:
            text = b""
        os.close(self._listen)
        return text.startswith(b"reacted\t")


def last_lines(path, count):
    """The last lines of a log, 8 KB of them at most."""
    with open(path, "rb") as log:
        log.seek(0, os.SEEK_END)
        log.seek(max(0, log.tell() - LINES_MAX_BYTES))
        return log.read().decode(errors="replace").splitlines()[-count:]
