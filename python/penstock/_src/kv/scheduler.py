"""The scheduler of a job that MXNet's launcher starts: the processes meet there, and it knows which are gone.

It gives workers and servers their numbers, by DMLC_TASK_ID, so they are the same in each run; without task ids, in the
order of arrival. It ends when all of them have ended. Nothing of the training passes through it. One that is started
again learns from the processes, which connect to it again, what the one before it has dealt.
"""

from __future__ import annotations

import dataclasses
import secrets
import selectors
import socket
import time
from typing import TYPE_CHECKING

from penstock._src.base import log
from penstock._src.base.errors import state_error
from penstock._src.kv.lines import LineError, Lines

if TYPE_CHECKING:
    from penstock._src.kv.lines import Message

_WAIT_S = 1.0  # between two looks at the clock
_REPORT_S = 10.0
_GRACE_S = 10.0  # in which processes find a scheduler that was started again


@dataclasses.dataclass
class _Member:
    lines: Lines
    role: str = ""  # "worker" or "server", once it has joined
    task: int = -1
    address: str = ""  # of a server
    number: int = -1  # among those of its role
    completed: bool = False


class Scheduler:
    """A listening socket, and the members that have joined.

    Args:
        host, port: where it listens: on the loopback interface if the host is that, otherwise on all interfaces.
        workers, servers: how many processes the job has.
        token: the job's token; "": only processes of this host may join.
    """

    def __init__(self, host: str, port: int, workers: int, servers: int, token: str) -> None:
        self._counts = {"worker": workers, "server": servers}
        self._token = token
        self._members: list[_Member] = []  # that are connected
        self._joined: list[_Member] = []
        self._job = secrets.token_hex(8)
        self._servers: list[str] = []  # their addresses, once numbers are dealt
        self._dealt = False
        self._complete_at = 0.0  # from then on all that are alive have come
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        # A host's name may mean its loopback interface here, and another one elsewhere.
        here = host if _is_loopback(host) else ""
        self._listener = socket.create_server((here, port), family=family, backlog=128)
        self.address: tuple[str, int] = self._listener.getsockname()[:2]
        self._select = selectors.DefaultSelector()
        self._select.register(self._listener, selectors.EVENT_READ, None)

    def serve(self) -> None:
        """Returns when all processes of the job have ended.

        Raises:
            StateError: E-kv-job-failed: processes ended that had not completed.
        """
        reported = time.monotonic()
        while not self._over():
            for key, _ in self._select.select(_WAIT_S):
                if key.data is None:
                    self._accept()
                else:
                    self._hear(key.data)
            if not self._dealt and time.monotonic() - reported > _REPORT_S:
                reported = time.monotonic()
                log.warning(f"kv scheduler: waits for {self._missing()}")
        self._select.close()
        self._listener.close()
        dead = [one for one in self._joined if not one.completed]
        if dead:
            raise state_error(
                "E-kv-job-failed",
                f"kv scheduler: ended without completing: {', '.join(_name(one) for one in dead)}",
                "its log says why",
            )

    def _over(self) -> bool:
        late = time.monotonic() >= self._complete_at or len(self._joined) == sum(self._counts.values())
        return self._dealt and late and all(one.lines.closed for one in self._joined)

    def _missing(self) -> str:
        have = [one.role for one in self._joined]
        return ", ".join(f"{count - have.count(role)} of {count} {role}s" for role, count in self._counts.items())

    def _accept(self) -> None:
        connection, peer = self._listener.accept()
        if not self._token and not _is_loopback(peer[0]):
            log.warning(f"kv scheduler: refused {peer[0]}: processes of other hosts need PENSTOCK_JOB_TOKEN")
            connection.close()
            return
        connection.settimeout(5)
        member = _Member(Lines(connection, self._token, "scheduler"))
        try:
            member.lines.greet()
        except OSError:
            connection.close()
            return
        self._members.append(member)
        self._select.register(member.lines, selectors.EVENT_READ, member)

    def _hear(self, member: _Member) -> None:
        try:
            for message in member.lines.read():
                self._take(member, message)
        except (LineError, OSError) as error:
            if not isinstance(error, ConnectionError):
                log.warning(f"kv scheduler: refused a process: {error}")
            member.lines.closed = True
        if member.lines.closed:
            self._select.unregister(member.lines)
            member.lines.close()
            self._members.remove(member)
            if member.role and not member.completed:
                log.warning(f"kv scheduler: {_name(member)} is gone; it had not completed")
                if not self._dealt:
                    self._joined.remove(member)

    def _take(self, member: _Member, message: Message) -> None:
        ask = message.get("ask")
        if not member.role:
            self._join(member, message)
        elif ask == "dead":
            dead = [one for one in self._joined if one.lines.closed and not one.completed]
            member.lines.send({"dead": [[one.role, one.number] for one in dead]})
        elif ask == "complete":
            member.completed = True
            member.lines.send({"ok": True})
        else:
            raise LineError("it sent a message that this version does not know")

    def _join(self, member: _Member, message: Message) -> None:
        role, task, address = message.get("role"), message.get("task"), message.get("address")
        if role not in self._counts or type(task) is not int or not isinstance(address, str):
            raise LineError("it sent a message that this version does not know")
        member.role, member.task, member.address = role, task, address
        if "again" in message:
            self._join_again(member, message["again"])
            return
        again = [one for one in self._joined if one.role == role and one.task == task >= 0]
        if again and not again[0].lines.closed:
            self._refuse(member, f"task {task} is a {role} already; DMLC_TASK_ID is to differ in each process")
        if again and self._dealt and role == "worker":  # it was restarted
            member.number = again[0].number
            self._joined[self._joined.index(again[0])] = member
            self._tell(member)
            return
        if self._dealt or sum(one.role == role for one in self._joined) == self._counts[role]:
            self._refuse(member, f"the job has {self._counts[role]} {role}s, and all have come")
        self._joined.append(member)
        if len(self._joined) == sum(self._counts.values()):
            self._deal()

    def _join_again(self, member: _Member, dealt: object) -> None:
        """Takes a process that lost its connection, perhaps because the scheduler before this one has ended."""
        number, servers, job = (
            (dealt.get(name) for name in ("number", "servers", "job")) if isinstance(dealt, dict) else [None] * 3
        )
        if type(number) is not int or not isinstance(servers, list) or not isinstance(job, str):
            raise LineError("it sent a message that this version does not know")
        if not 0 <= number < self._counts[member.role] or (self._dealt and job != self._job):
            self._refuse(member, "it belongs to another job")
        if not self._dealt:
            log.warning("kv scheduler: was started again; the processes of the job come back to it")
            self._dealt, self._job, self._servers = True, job, [str(one) for one in servers]
            self._complete_at = time.monotonic() + _GRACE_S
            self._joined = []
        member.number = number
        same = [one for one in self._joined if one.role == member.role and one.number == number]
        if same and not same[0].lines.closed:
            self._refuse(member, f"{_name(member)} is connected already")
        self._joined = [one for one in self._joined if one not in same] + [member]
        self._tell(member)

    def _refuse(self, member: _Member, why: str) -> None:
        member.role = ""
        member.lines.send({"refused": why})
        raise LineError(why)

    def _deal(self) -> None:
        self._dealt = True
        for role in self._counts:
            of_role = [one for one in self._joined if one.role == role]
            for number, one in enumerate(sorted(of_role, key=lambda one: (one.task < 0, one.task))):
                one.number = number
        servers = sorted((one for one in self._joined if one.role == "server"), key=lambda one: one.number)
        self._servers = [one.address for one in servers]
        for one in self._joined:
            try:
                self._tell(one)
            except OSError:
                pass  # its end is noticed when its connection is read

    def _tell(self, member: _Member) -> None:
        member.lines.send({"number": member.number, "servers": self._servers, "job": self._job})


def _name(member: _Member) -> str:
    return f"{member.role} {member.number if member.number >= 0 else '(not numbered yet)'}"


def _is_loopback(host: str) -> bool:
    return host.startswith("127.") or host in ("localhost", "::1", "::ffff:127.0.0.1")
