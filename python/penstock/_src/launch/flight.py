"""The flight recorder of a role: memory, shared with its launcher, in which the role keeps its last 4,096 events.

    flight = Flight()                       # before the role is started: pass flight.descriptor on, set its environment
    flight.progress()                       # time.monotonic() of the last progress of training; None: no progress yet
    recording = flight.read("trainer 0")    # works even if the role hangs, is stopped, or was killed

executor/observe/flight_memory.h defines the layout of the memory.
"""

from __future__ import annotations

import dataclasses
import fcntl
import json
import mmap
import os
import struct
import time
from typing import TYPE_CHECKING

from penstock._src.launch.logs import write_new

if TYPE_CHECKING:
    from collections.abc import Iterator


_MAGIC = 0x3130544C46534E50
_EVENTS, _EVENT_BYTES, _EVENTS_AT, _NAMES_BYTES = 4096, 48, 512, 1 << 20
_NAMES_AT = _EVENTS_AT + _EVENTS * _EVENT_BYTES
_BYTES = _NAMES_AT + _NAMES_BYTES
_FORM = (_EVENTS, _EVENT_BYTES, _EVENTS_AT, _NAMES_AT, _NAMES_BYTES)
_HEADER = struct.Struct("<Q6I3Q")
_EVENT = struct.Struct("<6Q")
_NAME = struct.Struct("<H")
_KINDS = slice(56, 512)

# Kinds of events that are not progress.
IDLE = frozenset({"pull asked", "peer left", "wait begun", "wait ended", "waits for"})


@dataclasses.dataclass(frozen=True)
class Event:
    time: float  # by time.monotonic()
    kind: str  # as executor/observe/recorder.cc names it
    step: int
    peer: str = ""
    variable: str = ""
    bytes: int = 0


@dataclasses.dataclass(frozen=True)
class Recording:
    """The last events of a role."""

    role: str  # "trainer 0"
    events: tuple[Event, ...] = ()  # the oldest first
    address: str = ""  # the address of a pserver, by which other roles name it
    state: str = ""  # "is stopped by a signal", "was killed by SIGKILL"; "": the role runs

    def write(self, path: str, now: float) -> None:
        """Writes JSON lines: the role, then its events, `ago_s` before `now`."""
        lines = [
            {
                "role": self.role,
                "state": self.state,
                "address": self.address,
                "written": time.time(),
                "events": len(self.events),
            }
        ]
        for event in self.events:
            line = dataclasses.asdict(event)
            lines.append({"ago_s": round(now - line.pop("time"), 3), **line})
        write_new(path, (json.dumps(line) + "\n" for line in lines))


class Flight:
    """The memory, created by the launcher and passed to one role."""

    def __init__(self) -> None:
        self.descriptor = os.memfd_create("penstock-flight", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        os.ftruncate(self.descriptor, _BYTES)
        # Sealed, because a role that truncated it would kill its launcher.
        fcntl.fcntl(self.descriptor, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SEAL)
        self._memory = mmap.mmap(self.descriptor, _BYTES, prot=mmap.PROT_READ)
        self._inode = os.fstat(self.descriptor).st_ino

    def environment(self) -> dict[str, str]:
        """Returns the variable that holds the descriptor and inode; by the inode, a process that did not inherit the
        descriptor notices this and maps nothing."""
        return {"PENSTOCK_FLIGHT_FD": f"{self.descriptor}:{self._inode}"}

    def close_ours(self) -> None:
        """Closes the descriptor, which only the role needs; the memory stays mapped."""
        os.close(self.descriptor)

    def progress(self) -> float | None:
        header = _HEADER.unpack_from(self._memory)
        return header[9] / 1e9 if header[0] == _MAGIC and header[8] > 0 else None

    def met(self) -> bool:
        """Returns whether the role has exchanged anything with another process of the job."""
        return any(event.kind not in IDLE for event in self._events())

    def read(self, role: str, address: str = "", state: str = "") -> Recording:
        return Recording(role, tuple(self._events()), address, state)

    def _events(self) -> Iterator[Event]:
        magic, *form, _, _, end, _ = _HEADER.unpack_from(self._memory)
        if magic != _MAGIC or tuple(form) != _FORM:
            return
        kinds = self._memory[_KINDS].rstrip(b"\0").decode(errors="replace").split("\n")
        for number in range(max(0, end - _EVENTS), end):
            at = _EVENTS_AT + number % _EVENTS * _EVENT_BYTES
            stamp, time_ns, step, size_sent, names, kind = _EVENT.unpack_from(self._memory, at)
            if stamp != number + 1 or _EVENT.unpack_from(self._memory, at)[0] != stamp or kind >= len(kinds):
                continue  # the event is being written
            yield Event(
                time_ns / 1e9, kinds[kind], step, self._name(names >> 32), self._name(names & 0xFFFFFFFF), size_sent
            )

    def _name(self, offset: int) -> str:
        if not 0 < offset < _NAMES_BYTES - 2:
            return ""
        (size,) = _NAME.unpack_from(self._memory, _NAMES_AT + offset)
        begin = _NAMES_AT + offset + 2
        return self._memory[begin : begin + size].decode(errors="replace")
