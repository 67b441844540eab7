"""Combines the flight recordings of a job's roles into one sentence: which role stopped, at which step, and which roles
wait for it.

    explain_hang(recordings, now)        # "trainer 1 stopped contributing at step 12 (last event: ...); ..."
    explain_failure(recordings, "trainer 1", "was killed by SIGKILL")

A recording states what its role waits for: "waits for" events, which long waits record, and open waits. The recording
of a pserver also states the progress of each trainer. The cause is the role for which others wait and which does not
wait itself.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from penstock._src.launch.flight import IDLE

if TYPE_CHECKING:
    from penstock._src.launch.flight import Event, Recording


_SAYS = {
    "step ended": "step {step} ended",
    "push sent": "{variable} sent to {peer}",
    "push taken": "{variable} taken by {peer}",
    "pull answered": "{variable} received from {peer}",
    "gradient taken": "gradient for {variable} of {peer} merged",
    "block run": "{variable} updated",
    "published": "{variable} sent to {peer}",
    "peer came": "{peer} connected",
}


@dataclasses.dataclass(frozen=True)
class _Role:
    """The facts of one recording."""

    name: str
    state: str
    step: int
    last: Event | None  # the last event of progress, or None
    waits: bool
    waits_for: frozenset[str]  # names of the roles for which it waits

    def is_trainer(self) -> bool:
        return self.name.startswith("trainer")


def explain_hang(recordings: list[Recording], now: float) -> str:
    """Returns the sentence; "" if the recordings do not show the cause."""
    roles = _read(recordings, None)
    culprit = _culprit(roles)
    if culprit is None:
        waits = [
            f"{role.name} for {_list(role.waits_for or {'an answer'})}"
            for role in roles.values()
            if role.waits or role.waits_for
        ]
        return f"every role waits for another: {'; '.join(waits)}" if waits else ""
    role = roles.get(culprit)
    if role is None or (role.last is None and not role.state):
        return f"{culprit} has not begun to train{_waiters(roles, culprit)}"
    return _sentence(role, role.state or "stopped contributing", now, "ago", roles)


def explain_failure(recordings: list[Recording], culprit: str, words: str) -> str:
    """Returns the sentence about a role that is known to have failed; `words` describe how it failed."""
    left = [
        event.time
        for recording in recordings
        for event in recording.events
        if event.kind == "peer left" and _names(recordings).get(event.peer, event.peer) == culprit
    ]
    # After the failure, the other roles react to it.
    roles = _read(recordings, min(left) if left else None)
    role = roles.get(culprit)
    if role is None or role.last is None:
        return ""
    ended = min(left) if left else max(event.time for r in recordings if r.role == culprit for event in r.events)
    return _sentence(role, words, ended, "before", roles)


def _sentence(role: _Role, words: str, then: float, when: str, roles: dict[str, _Role]) -> str:
    last = ""
    if role.last is not None:
        event = role.last
        says = _SAYS[event.kind].format(step=event.step, variable=event.variable or "a variable", peer=event.peer)
        last = f" (last event: {says} {max(0.0, then - event.time):.1f} s {when})"
    return f"{role.name} {words} at step {role.step}{last}{_waiters(roles, role.name)}"


def _waiters(roles: dict[str, _Role], culprit: str) -> str:
    waiters = sorted(name for name, role in roles.items() if name != culprit and _leads(roles, name, culprit))
    if not waiters:
        return ""
    return f"; {_list(waiters)} {'waits' if len(waiters) == 1 else 'wait'} for it"


def _list(names: frozenset[str] | list[str] | set[str]) -> str:
    names = sorted(names)
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def _leads(roles: dict[str, _Role], name: str, culprit: str) -> bool:
    """Returns whether the role waits for the culprit, directly or indirectly, or records only that it waits."""
    if not roles[name].waits and not roles[name].waits_for:
        return False
    seen, open_names = set(), [name]
    while open_names:
        at = open_names.pop()
        if at == culprit:
            return True
        if at in seen or at not in roles:
            continue
        seen.add(at)
        open_names.extend(roles[at].waits_for)
    return not roles[name].waits_for


def _culprit(roles: dict[str, _Role]) -> str | None:
    """Returns the name of the role for which others wait and which does not wait; None if every role waits."""
    wanted: dict[str, int] = {}
    for role in roles.values():
        for name in role.waits_for:
            wanted[name] = wanted.get(name, 0) + 1
    free = [name for name in wanted if name not in roles or not (roles[name].waits or roles[name].waits_for)]
    if not free:
        free = [role.name for role in roles.values() if not (role.waits or role.waits_for)]
        trainers = [name for name in free if roles[name].is_trainer()]
        free = trainers or free
    if not free:
        return None
    return min(free, key=lambda name: (-wanted.get(name, 0), roles[name].step if name in roles else 0, name))


def _names(recordings: list[Recording]) -> dict[str, str]:
    return {f"pserver {recording.address}": recording.role for recording in recordings if recording.address}


def _read(recordings: list[Recording], until: float | None) -> dict[str, _Role]:
    names = _names(recordings)
    trainers = sorted(r.role for r in recordings if r.role.startswith("trainer"))
    roles = {}
    for recording in recordings:
        events = [
            dataclasses.replace(event, peer=names.get(event.peer, event.peer))
            for event in recording.events
            if until is None or event.time < until
        ]
        roles[recording.role] = _read_one(recording, events, trainers)
    return roles


def _read_one(recording: Recording, events: list[Event], trainers: list[str]) -> _Role:
    is_trainer = recording.role.startswith("trainer")
    last, open_waits, waits_for, step, ended = None, 0, set(), 0, {}
    for event in events:
        if event.kind not in IDLE:
            last = event
            step = max(step, event.step + (event.kind == "step ended"))
            if event.kind == "step ended" and not is_trainer:
                ended[event.peer] = event.step + 1
        if event.kind == "wait begun":
            open_waits += 1
        elif event.kind == "wait ended":
            open_waits = max(0, open_waits - 1)
        if event.kind == "waits for":
            waits_for.add(event.peer)
        elif event.kind != "pull asked":
            waits_for.clear()
    if not is_trainer and ended and not waits_for:  # not recorded yet
        waits_for = {name for name in trainers if ended.get(name, 0) < max(ended.values())}
    if is_trainer and open_waits == 0:
        waits_for = set()
    if recording.state:  # it would not notice the end of its wait
        open_waits, waits_for = 0, set()
    return _Role(recording.role, recording.state, step, last, open_waits > 0, frozenset(waits_for))
