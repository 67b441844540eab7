"""Reads a trace in Perfetto's format, by the field numbers of its protocol buffers.

trace = read(path)
trace.processes          # {track: name}
trace.threads            # {track: (track of the process, thread)}
trace.events             # [Event]: slices, with their end, and instants
"""

import dataclasses

BEGIN, END, INSTANT = 1, 2, 3


@dataclasses.dataclass
class Event:
    track: int
    begin: int
    end: int
    name: str
    category: str
    flows: tuple  # that go on
    ended: tuple  # flows that end here
    facts: dict
    depth: int


@dataclasses.dataclass
class Trace:
    processes: dict
    threads: dict
    events: list

    def of(self, role):
        """The events of the threads of a process."""
        (track,) = [track for track, name in self.processes.items() if name == role]
        return [event for event in self.events if self.threads[event.track][0] == track]

    def role(self, event):
        return self.processes[self.threads[event.track][0]]


def _varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return value, at


def _fields(data):
    """Yields (field number, value): an int, or bytes."""
    at = 0
    while at < len(data):
        key, at = _varint(data, at)
        kind = key & 7
        if kind == 0:
            value, at = _varint(data, at)
        else:
            size, at = (8, at) if kind == 1 else (4, at) if kind == 5 else _varint(data, at)
            value, at = data[at : at + size], at + size
            if kind in (1, 5):
                value = int.from_bytes(value, "little")
        yield key >> 3, value


def _first(data):
    return dict(reversed(list(_fields(data))))


def read(path):
    names = {1: {}, 2: {}, 3: {}}  # categories, events, facts: {iid: name}
    trace, open_slices = Trace({}, {}, []), {}
    with open(path, "rb") as file:
        packets = [value for number, value in _fields(file.read()) if number == 1]
    for data in packets:
        packet = _first(data)
        for number, value in _fields(packet.get(12, b"")):
            entry = _first(value)
            names[number][entry[1]] = entry[2].decode()
        if 60 in packet:
            _describe(trace, _first(packet[60]))
        elif 11 in packet:
            _add(trace, open_slices, names, packet[8], packet[11])
    assert not any(open_slices.values()), "slices without an end"
    return trace


def _describe(trace, track):
    if 3 in track:
        trace.processes[track[1]] = _first(track[3])[6].decode()
    else:
        trace.threads[track[1]] = (track[5], _first(track[4])[2])


def _add(trace, open_slices, names, time, data):
    fields = list(_fields(data))
    event = dict(reversed(fields))
    nest = open_slices.setdefault(event[11], [])
    if event[9] == END:
        nest.pop().end = time
        return
    facts = [_first(value) for number, value in fields if number == 4]
    added = Event(
        event[11],
        time,
        time,
        names[2][event[10]],
        names[1][event[3]],
        tuple(value for number, value in fields if number == 47),
        tuple(value for number, value in fields if number == 48),
        {names[3][fact[1]]: fact[6].decode() if 6 in fact else fact.get(3, 0) for fact in facts},
        len(nest),
    )
    trace.events.append(added)
    if event[9] == BEGIN:
        nest.append(added)
