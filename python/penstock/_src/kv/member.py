"""A worker or server that meets the others at the scheduler, and reports its end there."""

from __future__ import annotations

import select
import socket
import threading
import time
from typing import TYPE_CHECKING, NamedTuple

from penstock._penstock import PeerError
from penstock._src.base import environment
from penstock._src.base.errors import error_with_id
from penstock._src.kv.lines import LineError, Lines

if TYPE_CHECKING:
    from penstock._src.kv.lines import Message
    from penstock._src.kv.nodes import Nodes

_RETRY_S = 0.1
_START_S = 900.0
_LOOK_S = 1.0  # between two looks at whether the scheduler is gone


class Dealt(NamedTuple):
    """What the scheduler tells a process."""

    number: int  # among the processes of its role
    servers: list[str]
    job: str


class Member:
    """The connection to the scheduler. If it ends, a thread connects again: the scheduler may be started again.

    Args:
        host, port: the scheduler's.
        token: the job's token, or "".
    """

    def __init__(self, host: str, port: int, token: str) -> None:
        self._where = f"{host}:{port}"
        self._address = (host, port)
        self._token = token
        self._hello: Message = {}  # to a scheduler that was started again
        self._completed = threading.Event()
        self._until = time.monotonic() + environment.value("PENSTOCK_START_S", _START_S)
        self._lock = threading.Lock()
        self._socket = self._connect(host, port)
        self._lines = Lines(self._socket, token, "member")

    def own_host(self) -> str:
        """Returns the address of this host on the way to the scheduler."""
        return str(self._socket.getsockname()[0])

    def join(self, role: str, task: int, address: str) -> Dealt:
        """Waits until all processes have come.

        Raises:
            PeerError: E-kv-scheduler: the scheduler cannot be reached, or refuses this process.
        """
        try:
            while not self._lines.greeted():
                self._read()
            self._lines.hello({"role": role, "task": task, "address": address})
            answer = self._answer()
        except (LineError, OSError) as error:
            raise self._error(str(error) or type(error).__name__) from None
        if "refused" in answer:
            raise self._error(str(answer["refused"]))
        number, servers, job = answer.get("number"), answer.get("servers"), answer.get("job")
        if type(number) is not int or not isinstance(servers, list) or not isinstance(job, str):
            raise self._error("it speaks another version")
        self._hello = {"role": role, "task": task, "address": address, "again": answer}
        threading.Thread(target=self._stay, daemon=True).start()
        return Dealt(number, [str(one) for one in servers], job)

    def dead(self, nodes: Nodes) -> int:
        """Returns how many of these processes are gone; 0 if the scheduler is gone itself."""
        gone = self._ask("dead").get("dead")
        return sum(nodes.counts(role, number) for role, number in gone) if isinstance(gone, list) else 0

    def complete(self) -> None:
        """Reports that this process ends in order."""
        self._completed.set()
        self._ask("complete")
        self._lines.close()

    def _ask(self, what: str) -> Message:
        with self._lock:
            self._until = time.monotonic() + 5
            try:
                self._lines.send({"ask": what})
                return self._answer()
            except (LineError, OSError):
                return {}  # training goes on without the scheduler

    def _stay(self) -> None:
        """Connects again, as often as the connection ends, until this process has completed."""
        while not self._completed.wait(_LOOK_S):
            with self._lock:
                if self._is_gone():
                    self._come_back()

    def _is_gone(self) -> bool:
        look = select.poll()
        try:
            look.register(self._socket, select.POLLIN)
            return bool(look.poll(0)) and not self._socket.recv(1, socket.MSG_PEEK)
        except (OSError, ValueError):  # it is closed
            return True

    def _come_back(self) -> None:
        try:
            self._socket.close()
            self._socket = socket.create_connection(self._address, timeout=1)
            self._lines = Lines(self._socket, self._token, "member")
            self._until = time.monotonic() + 5
            while not self._lines.greeted():
                self._read()
            self._lines.hello(self._hello)
            self._answer()
        except (LineError, OSError):
            self._socket.close()  # it is tried again

    def _connect(self, host: str, port: int) -> socket.socket:
        while True:
            try:
                return socket.create_connection((host, port), timeout=5)
            except socket.gaierror as error:
                raise self._error(f"{host} (DMLC_PS_ROOT_URI) is not a known host: {error}") from None
            except OSError as error:
                if time.monotonic() > self._until:
                    raise self._error(f"it did not answer in time: {error}") from None
            time.sleep(_RETRY_S)

    def _answer(self) -> Message:
        while True:
            messages = self._read()
            if messages:
                return messages[0]

    def _read(self) -> list[Message]:
        while True:
            if time.monotonic() > self._until:
                raise LineError("the processes of the job did not all come in time")
            self._socket.settimeout(1)
            try:
                messages = self._lines.read()
            except (TimeoutError, socket.timeout):
                continue
            if self._lines.closed and not messages:
                raise LineError("it closed the connection; PENSTOCK_JOB_TOKEN must be the same in all processes")
            return messages

    def _error(self, why: str) -> PeerError:
        return error_with_id(
            PeerError,
            "E-kv-scheduler",
            f"kv: the scheduler at {self._where}: {why}",
            "DMLC_PS_ROOT_URI and DMLC_PS_ROOT_PORT name it; its process has DMLC_ROLE=scheduler",
        )
