"""How `penstock scale` talks to the launcher of a running job: through files in its log folder.

launcher.lock     the launcher holds a lock on it while it can be asked
scale.request     the command: the number of pservers, and a name of the request
scale.answer      the launcher: what has become of the request with that name
"""

from __future__ import annotations

import fcntl
import json
import os
import uuid
from typing import TYPE_CHECKING, cast

from penstock._src.launch.logs import remove, write_new

if TYPE_CHECKING:
    from typing import Any


def _path(log_dir: str, name: str) -> str:
    return os.path.join(log_dir, name)


def _put(log_dir: str, name: str, facts: dict[str, Any]) -> None:
    """Replaces a file as a whole. Raises OSError."""
    made = _path(log_dir, f"{name}.{os.getpid()}")
    write_new(made, [json.dumps(facts)])
    os.rename(made, _path(log_dir, name))


def _take(log_dir: str, name: str) -> dict[str, Any] | None:
    """Returns what a file says; None if there is none."""
    try:
        with open(_path(log_dir, name)) as file:
            facts = json.load(file)
    except (OSError, ValueError):
        return None
    return facts if isinstance(facts, dict) else None


class Requests:
    """The launcher's side. Without a lock, such as beside another launcher with the same folder, there are none."""

    def __init__(self, log_dir: str) -> None:
        self._log_dir = log_dir
        for name in ("scale.request", "scale.answer"):
            remove(_path(log_dir, name))
        try:
            self._lock = os.open(_path(log_dir, "launcher.lock"), os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o666)
        except OSError:
            self._lock = -1
            return
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            self.close()

    def take(self) -> tuple[int, str] | None:
        """Returns (number of pservers, name) of a new request, and forgets it; None if there is none."""
        if self._lock < 0 or not os.path.exists(_path(self._log_dir, "scale.request")):
            return None
        facts = _take(self._log_dir, "scale.request")
        remove(_path(self._log_dir, "scale.request"))
        if facts is None or not isinstance(facts.get("servers"), int) or not isinstance(facts.get("name"), str):
            return None
        return facts["servers"], facts["name"]

    def answer(self, name: str, line: str, failed: bool) -> None:
        """Never fails: the launcher prints the line, too."""
        try:
            _put(self._log_dir, "scale.answer", {"name": name, "line": line, "failed": failed})
        except OSError:
            pass

    def close(self) -> None:
        if self._lock >= 0:
            os.close(self._lock)
        self._lock = -1


class Request:
    """The command's side. Raises OSError if it cannot be written."""

    def __init__(self, log_dir: str, servers: int) -> None:
        self._log_dir, self._name = log_dir, uuid.uuid4().hex
        _put(log_dir, "scale.request", {"servers": servers, "name": self._name})

    def answer(self) -> tuple[str, bool] | None:
        """Returns (line, failed); None as long as there is no answer."""
        facts = _take(self._log_dir, "scale.answer")
        if facts is None or facts.get("name") != self._name:
            return None
        return cast(str, facts["line"]), bool(facts["failed"])


def has_launcher(log_dir: str) -> bool:
    """Returns whether a launcher that can be asked has this log folder."""
    try:
        lock = os.open(_path(log_dir, "launcher.lock"), os.O_RDWR | os.O_NOFOLLOW)
    except OSError:
        return False
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(lock)
    return False
