"""The hosts of a job, from a file such as MXNet's launcher takes.

10.0.0.1
10.0.0.2:2222           # sshd's port
user@node3 slots=4      # Open MPI's form; over ssh the slots have no effect
"""

from __future__ import annotations

import dataclasses
import re

from penstock._src.launch.errors import JobError


@dataclasses.dataclass(frozen=True)
class Host:
    """A machine that is reached through ssh."""

    name: str  # as ssh takes it: [user@]host
    port: int | None = None  # of its sshd; None: as ssh's configuration has it

    @property
    def address(self) -> str:
        """The name without the user: the address under which others reach the host."""
        return self.name.rpartition("@")[2]

    @property
    def text(self) -> str:
        return self.name if self.port is None else f"{self.name} port {self.port}"


_REST = re.compile(r"(?:max[-_]?)?slots=\d+")


def _parsed(path: str, number: int, line: str) -> Host:
    word, *rest = line.split()
    name, port = word, None
    if word.count(":") == 1 or "]:" in word:  # else a bare name, or a bare IPv6 address
        name, _, port = word.rpartition(":")
    name = re.sub(r"[\[\]]", "", name)
    good = name and not name.startswith("-") and all(map(_REST.fullmatch, rest))
    if not good or (port is not None and not (port.isdigit() and 1 <= int(port) <= 65535)):
        raise JobError(
            f"{path}:{number}: {line!r} is not a host; a line is `host`, `host:port` or `host slots=N`",
            "E-launch-hosts",
        )
    return Host(name, None if port is None else int(port))


def read_hosts(path: str) -> tuple[Host, ...]:
    """Returns the hosts of a file, a line each; empty lines and what follows # are skipped. Raises JobError."""
    try:
        with open(path) as file:
            lines = [line.partition("#")[0].strip() for line in file]
    except (OSError, UnicodeDecodeError) as error:
        raise JobError(
            f"the file of hosts {path}: {getattr(error, 'strerror', None) or error}", "E-launch-hosts"
        ) from error
    hosts = tuple(_parsed(path, i, line) for i, line in enumerate(lines, 1) if line)
    if not hosts:
        raise JobError(f"the file of hosts {path} names no host", "E-launch-hosts")
    return hosts
