"""Starts the processes of a job on a host, and ends them when its connection with the launcher ends.

The launcher sends this file over the connection, and the host's Python runs it: it uses the standard library only.
Messages are JSON objects, one a line, on standard input and output:

    {"start": "trainer 0", "command": [...], "environment": {...}, "folder": DIR}
    {"signal": 15}                        to the group of each process
    {"folder": DIR}                       creates a folder; relative to the user's home
    {"beat": 0}                           the launcher lives
    {"stop": 0}                           end all and exit

    {"keeper": version, "rsync": true}    the first answer
    {"out": "trainer 0", "text": "..."}   {"end": "trainer 0", "code": 1}   {"refused": "trainer 0", "why": "..."}
    {"made": ABSOLUTE, "why": ""}         {"beat": 0}

A connection counts as ended at the end of standard input, and when the launcher has been silent for SILENCE_S: a
network that is cut does not say so. Then each process group gets SIGTERM, and TERM_S later everything that was started
here is killed: the keeper adopts orphans, so it finds also processes that have left their group.
"""

from __future__ import annotations

import ctypes
import json
import os
import selectors
import shutil
import signal
import subprocess
import sys
import time

VERSION = 1
BEAT_S = 0.5
SILENCE_S = 3.0
TERM_S = 0.5
KILL_S = 3.0  # the longest time to wait for processes that were killed
POLL_S = 0.1
UNSENT_MAX = 1 << 20  # while more waits to be sent, no output is read
IGNORED = (signal.SIGINT, signal.SIGHUP, signal.SIGPIPE)
PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36

libc = ctypes.CDLL(None, use_errno=True)


def children() -> list[int]:
    """Returns the pids of the processes whose parent this one is."""
    found = []
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                with open(f"/proc/{name}/stat") as file:
                    parent = int(file.read().rpartition(")")[2].split()[1])
            except (OSError, ValueError, IndexError):
                continue  # it has ended meanwhile
            if parent == os.getpid():
                found.append(int(name))
    return found


def signal_group(leader: int, number: int) -> None:
    try:
        os.killpg(leader, number)
    except ProcessLookupError:
        pass  # it has ended


class Keeper:
    def __init__(self) -> None:
        self.names: dict[int, str] = {}  # pid of a process that runs -> its name
        self.unsent = b""
        self.received = b""
        self.heard = time.monotonic()
        self.beat_at = 0.0
        self.over = False
        self.selector = selectors.DefaultSelector()
        self.selector.register(0, selectors.EVENT_READ, None)
        os.set_blocking(0, False)
        os.set_blocking(1, False)

    def send(self, **message: object) -> None:
        self.unsent += json.dumps(message).encode() + b"\n"

    def flush(self) -> None:
        try:
            while self.unsent:
                self.unsent = self.unsent[os.write(1, self.unsent) :]
        except BlockingIOError:
            pass
        except OSError:  # nobody reads any more
            self.over = True

    def run(self) -> None:
        self.send(keeper=VERSION, rsync=shutil.which("rsync") is not None)
        try:
            while not self.over:
                self.step()
        finally:
            self.end_all()
        self.flush()

    def step(self) -> None:
        now = time.monotonic()
        if now - self.beat_at >= BEAT_S:
            self.beat_at = now
            self.send(beat=0)
        self.flush()
        for key, _ in self.selector.select(POLL_S):
            if key.fd == 0:
                self.read_input()
            elif len(self.unsent) < UNSENT_MAX:
                self.read_output(key.fd, key.data)
            else:
                time.sleep(POLL_S)
        self.reap()
        if time.monotonic() - self.heard > SILENCE_S:
            self.over = True

    def read_input(self) -> None:
        try:
            chunk = os.read(0, 1 << 16)
        except BlockingIOError:
            return
        except OSError:
            chunk = b""
        if not chunk:
            self.over = True
            return
        self.heard = time.monotonic()
        *lines, self.received = (self.received + chunk).split(b"\n")
        for line in lines:
            self.obey(json.loads(line.decode()))

    def obey(self, message: dict) -> None:  # type: ignore[type-arg]
        if "start" in message:
            self.start(message)
        elif "signal" in message:
            for pid in list(self.names):
                signal_group(pid, message["signal"])
        elif "folder" in message:
            path, why = os.path.abspath(os.path.expanduser(message["folder"])), ""
            try:
                os.makedirs(path, exist_ok=True)
            except OSError as error:
                why = error.strerror or str(error)
            self.send(made=path, why=why)
        elif "stop" in message:
            self.over = True

    def start(self, message: dict) -> None:  # type: ignore[type-arg]
        name, parent = message["start"], os.getpid()

        def before_exec() -> None:
            for number in IGNORED:
                signal.signal(number, signal.SIG_DFL)
            libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
            if os.getppid() != parent:
                os._exit(1)

        try:
            process = subprocess.Popen(
                message["command"],
                env={**os.environ, "PWD": message["folder"], **message["environment"]},
                cwd=message["folder"],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                preexec_fn=before_exec,
            )
        except OSError as error:
            self.send(refused=name, why=f"{error.filename or message['command'][0]}: {error.strerror or error}")
            return
        self.names[process.pid] = name
        process.returncode = 0  # it is waited for in reap
        assert process.stdout is not None
        descriptor = os.dup(process.stdout.fileno())
        process.stdout.close()
        os.set_blocking(descriptor, False)
        self.selector.register(descriptor, selectors.EVENT_READ, name)

    def read_output(self, descriptor: int, name: str) -> bool:
        """Returns whether there was any."""
        try:
            chunk = os.read(descriptor, 1 << 15)
        except BlockingIOError:
            return False
        except OSError:
            chunk = b""
        if not chunk:
            self.selector.unregister(descriptor)
            os.close(descriptor)
            return False
        self.send(out=name, text=chunk.decode(errors="surrogateescape"))
        return True

    def reap(self) -> None:
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            name = self.names.pop(pid, None)
            if name is not None:
                for key in [key for key in self.selector.get_map().values() if key.data == name]:
                    while self.read_output(key.fd, name):
                        pass
                code = -os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)
                self.send(end=name, code=code)

    def end_all(self) -> None:
        """Ends every process that was started here, and whatever those have started."""
        for pid in list(self.names):
            signal_group(pid, signal.SIGTERM)
        deadline = time.monotonic() + TERM_S
        while self.names and time.monotonic() < deadline:
            time.sleep(0.02)
            self.reap()
        deadline = time.monotonic() + KILL_S
        while time.monotonic() < deadline:
            left = children()
            if not left:
                return
            for pid in left:
                os.kill(pid, signal.SIGKILL)  # it is a child that was not waited for
            self.reap()
            time.sleep(0.01)


if __name__ == "__main__":
    for number in IGNORED:
        signal.signal(number, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # ends all on the way out
    libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    Keeper().run()
