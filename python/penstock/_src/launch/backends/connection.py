"""The connection with the keeper of one host: through OpenSSH's client, or of this machine through pipes.

    connection = Connection(host, options, control)     # ssh starts to connect
    connection.send(start="trainer 0", command=[...])   # never waits
    connection.receive()                                # messages that have arrived; raises ConnectionLost
    connection.close()

The session is the master of ssh's control socket, so copies to the host use the same connection. The host's shell sees
only the fixed command KEEPER_COMMAND, which sh, csh and fish read alike; everything else travels over standard input.
"""

from __future__ import annotations

import importlib.util
import json
import os
import shlex
import signal
import subprocess
import sys
import threading
import time
from typing import TYPE_CHECKING

from penstock._src.launch.guard import die_with_parent

if TYPE_CHECKING:
    from argparse import Namespace
    from typing import Any

    from penstock._src.launch.backends.hosts import Host


KEEPER_COMMAND = (
    'exec {python} -c \'import sys;i=sys.stdin.buffer;exec(compile(i.read(int(i.readline())),"keeper","exec"))\''
)
SILENCE_S = 3.0
ALIVE_S = 1  # ssh asks so often whether the host answers; after three times without an answer it ends
WAIT_S = 2.0  # for ssh, once it has closed its output
READ_MAX = 1 << 24  # bytes in one call


class ConnectionLost(Exception):
    """The host is out of reach, or its keeper has ended; the message gives the reason."""


def ssh_options(host: Host, options: Namespace, control: str) -> list[str]:
    """Returns the words of an ssh command up to the host; `control`: the path of the control socket."""
    return [
        *(["-p", str(host.port)] if host.port is not None else []),
        *(word for given in options.ssh_option for word in ("-o", given)),
        "-o",
        "StrictHostKeyChecking=accept-new",
        "-o",
        f"ServerAliveInterval={ALIVE_S}",
        "-o",
        "ServerAliveCountMax=3",
        "-o",
        f"ControlPath={control}",
    ]


def keeper_command(host: Host | None, options: Namespace, control: str) -> list[str]:
    """Returns the command that starts a host's keeper."""
    if host is None:
        return ["sh", "-c", KEEPER_COMMAND.format(python=shlex.quote(sys.executable))]
    command = KEEPER_COMMAND.format(python=shlex.quote(options.remote_python or "python3"))
    return ["ssh", "-T", *ssh_options(host, options, control), "-o", "ControlMaster=yes", host.name, command]


def _keeper_source() -> bytes:
    found = importlib.util.find_spec("penstock._src.launch.backends.keeper")
    assert found is not None and found.origin is not None
    with open(found.origin, "rb") as file:
        return file.read()


def _before_ssh(parent: int) -> None:
    """ssh stays in the terminal's process group, so that it can ask for a passphrase; it leaves the terminal's signals
    to the launcher."""
    _ignore_terminal()
    die_with_parent(parent)


def _ignore_terminal() -> None:
    for number in (signal.SIGINT, signal.SIGQUIT, signal.SIGTSTP):
        signal.signal(number, signal.SIG_IGN)


class Connection:
    """`host`: None is this machine."""

    def __init__(self, host: Host | None, options: Namespace, control: str) -> None:
        self.host = host
        self.control = control
        self.has_rsync = False
        self.is_ready = False
        self._received = b""
        self._unsent = bytearray()
        self._lock = threading.Lock()  # of what is sent: a thread sends the beats
        self._heard = time.monotonic()
        parent = os.getpid()
        self._process = subprocess.Popen(
            keeper_command(host, options, control),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            preexec_fn=_ignore_terminal if host is None else lambda: _before_ssh(parent),
        )
        assert self._process.stdin is not None and self._process.stdout is not None
        self._in, self._out = self._process.stdin.fileno(), self._process.stdout.fileno()
        os.set_blocking(self._in, False)
        os.set_blocking(self._out, False)
        source = _keeper_source()
        self._write(b"%d\n" % len(source) + source)

    @property
    def name(self) -> str:
        return "this machine" if self.host is None else self.host.text

    def fileno(self) -> int:
        return self._out

    def send(self, **message: Any) -> None:
        """Sends a message, at once or with later ones; has no effect if the connection is lost, which receive says."""
        self._write(json.dumps(message).encode() + b"\n")

    def beat(self) -> None:
        if self.is_ready:
            self.send(beat=0)

    def _write(self, data: bytes) -> None:
        with self._lock:
            self._unsent += data
            try:
                while self._unsent:
                    del self._unsent[: os.write(self._in, self._unsent)]
            except OSError:  # the pipe is full, or the reader has ended
                pass

    def receive(self) -> list[dict[str, Any]]:
        """Returns the messages that have arrived; raises ConnectionLost. Lines of the host's login files are none."""
        chunk = b""
        try:
            while part := os.read(self._out, 1 << 16):
                chunk += part
                if len(chunk) > READ_MAX:
                    break
            if not part:
                self._raise_end(chunk)
        except BlockingIOError:
            pass
        if chunk:
            self._heard = time.monotonic()
        elif self.is_ready and time.monotonic() - self._heard > SILENCE_S:
            raise ConnectionLost(f"the host has not answered for {SILENCE_S:g} s")
        *lines, self._received = (self._received + chunk).split(b"\n")
        if len(self._received) > READ_MAX:
            raise ConnectionLost("it sent a line without an end")
        return [message for message in map(self._parsed, lines) if message is not None]

    def _raise_end(self, chunk: bytes) -> None:
        if chunk:  # the last messages; the next call notices the end
            return
        code = self._wait(WAIT_S)
        if self.host is not None and code == 255:
            raise ConnectionLost("ssh could not connect" if not self.is_ready else "the ssh connection broke")
        what = "the keeper" if self.is_ready else f"the keeper of {self.name} did not start and"
        raise ConnectionLost(f"{what} ended with code {code}; it needs Python 3.7 or later (--remote_python)")

    def _parsed(self, line: bytes) -> dict[str, Any] | None:
        try:
            message = json.loads(line)
        except ValueError:
            message = None
        if not self.is_ready and isinstance(message, dict) and "keeper" in message:
            self.is_ready = True
            self.has_rsync = message["rsync"] is True
            return None
        if not self.is_ready:
            sys.stderr.write(f"[{self.name}] {line.decode(errors='replace')}\n")
            return None
        return message if isinstance(message, dict) else None

    def close(self, patience_s: float = 0.0) -> None:
        """Ends the connection, and with it whatever runs on the host."""
        self.send(stop=0)
        self._wait(patience_s)

    def _wait(self, patience_s: float) -> int:
        try:
            return self._process.wait(patience_s)
        except subprocess.TimeoutExpired:
            self._process.kill()
            return self._process.wait()
