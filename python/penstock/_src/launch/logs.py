"""Files in the log folder. Writing and reading them never fails the launcher, and no link leads out of the folder."""

from __future__ import annotations

import os
import stat
import sys
from typing import TYPE_CHECKING

from penstock._src.launch.errors import JobError

if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import BinaryIO, NoReturn, TextIO


LINES_MAX_BYTES = 8192
_LOG_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


def open_log(path: str, continues: bool) -> BinaryIO:
    """Opens a role's log for writing: emptied, or at its end if it `continues`. Raises JobError.

    A link is refused: any process that may write to the folder could otherwise make the launcher overwrite a file
    elsewhere. Anything else but a file is refused too, because opening a pipe would wait for its reader.
    """
    try:
        descriptor = os.open(path, _LOG_FLAGS, 0o666)
    except OSError as error:
        why = "it is a link" if os.path.islink(path) else error.strerror or str(error)
        raise JobError(f"cannot write the log {path}: {why}   [E-launch-log]") from error
    log, found = os.fdopen(descriptor, "ab"), os.fstat(descriptor)
    if not stat.S_ISREG(found.st_mode):
        log.close()
        raise JobError(f"cannot write the log {path}: it is not a regular file   [E-launch-log]")
    if found.st_nlink > 1:  # such as a backup of hard links: the other names keep their file
        log.close()
        remove(path)
        return open_log(path, continues=True) if not os.path.lexists(path) else _refuse_links(path)
    os.set_blocking(descriptor, True)
    if not continues:
        log.truncate(0)
    log.seek(0, os.SEEK_END)
    return log


def _refuse_links(path: str) -> NoReturn:
    raise JobError(f"cannot write the log {path}: it has other names, and cannot be removed   [E-launch-log]")


def write_new(path: str, lines: Iterable[str]) -> None:
    """Writes a file of the log folder that replaces an older one; raises OSError."""
    remove(path)
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o666)
    with os.fdopen(descriptor, "w") as file:
        file.writelines(lines)


def remove(path: str) -> None:
    """Removes a file if it is there and can be removed."""
    try:
        os.unlink(path)
    except OSError:
        pass


def last_lines(path: str, count: int) -> list[str]:
    """Returns the last lines of a log, at most 8 KB; a line that says why they cannot be read."""
    try:
        with open(path, "rb") as log:
            log.seek(0, os.SEEK_END)
            log.seek(max(0, log.tell() - LINES_MAX_BYTES))
            return log.read().decode(errors="replace").splitlines()[-count:]
    except OSError as error:
        return [f"(the log cannot be read: {error.strerror or error})"]


def say(line: str, stream: TextIO | None = None) -> None:
    """Prints a line on standard error, or another stream; does nothing if it takes none."""
    try:
        print(line, file=stream or sys.stderr, flush=True)
    except (OSError, ValueError):
        pass  # closed, or on a full disk


def require_folder(option: str, folder: str) -> None:
    """Creates the folder of an option, and checks that it is writable."""
    try:
        os.makedirs(folder, exist_ok=True)
    except FileExistsError as error:
        raise JobError(f"{option} {folder}: not a folder") from error
    except OSError as error:
        raise JobError(f"{option} {folder}: {error.strerror or error}") from error
    probe = os.path.join(folder, f".penstock-{os.getpid()}")
    try:
        os.close(os.open(probe, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        os.unlink(probe)
    except OSError as error:
        raise JobError(f"{option} {folder}: cannot create a file there: {error.strerror or error}") from error
