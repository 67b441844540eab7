"""Determines which role caused the failure of a job.

    cause = find_cause(failures, pservers, 2)  # Failures, the pservers' addresses in order, the number of trainers
    cause.failure                              # the failure to report first
    cause.role, cause.words                    # "trainer 1", "was killed by SIGKILL"

A role that failed by itself is the cause. If all failures are reactions, each names a role: the text of a reaction
begins with the peer that failed, and ends with "seen by" and the role that noticed it. The role that most reactions
name is the cause, unless a signal had stopped another of them. If two roles name each other, and no signal had stopped
either, the connection between them broke.
"""

from __future__ import annotations

import collections
import dataclasses
import re

from penstock._src.launch.outcome import ENDED, OWN, REACTED, Failure

_ROLE = re.compile(r"\b(trainer|rank|pserver) (\S+)")


@dataclasses.dataclass(frozen=True)
class Cause:
    failure: Failure
    role: str = ""  # "": a machine, or the whole job
    words: str = ""
    sentence: str = ""  # if neither role nor words describe it: the whole sentence


def find_cause(failures: list[Failure], pservers: list[str], trainers: int) -> Cause | None:
    """Returns the Cause, or None if nothing failed."""
    for failure in failures:
        if failure.kind == OWN:
            return Cause(failure, failure.role, failure.outcome)
    reactions = [failure for failure in failures if failure.kind == REACTED]
    known = {*(f"trainer {i}" for i in range(trainers)), *(f"pserver {i}" for i in range(len(pservers)))}
    blamed = _blamed(reactions, known, pservers)
    if blamed:
        return _most_blamed(failures, reactions, blamed, pservers)
    for failure in (*reactions, *(failure for failure in failures if failure.kind == ENDED)):
        return Cause(failure, failure.role, failure.outcome)
    return None


def named_in(note: str, pservers: list[str]) -> list[str]:
    """Returns the roles that a note names, in order: "trainer 1", "pserver 0"."""
    roles = []
    for kind, name in _ROLE.findall(note):
        name = name.rstrip(",:;.)")
        if kind == "pserver":
            role = f"pserver {pservers.index(name)}" if name in pservers else ""
        else:
            role = f"trainer {name}" if name.isdigit() else ""
        if role and role not in roles:
            roles.append(role)
    return roles


def _blamed(reactions: list[Failure], known: set[str], pservers: list[str]) -> dict[str, str]:
    """Returns {role: the role that its reaction blames}."""
    blamed = {}
    for reaction in reactions:
        others = [role for role in named_in(reaction.note, pservers) if role != reaction.role and role in known]
        if others:
            blamed[reaction.role] = others[0]
    return blamed


def _most_blamed(
    failures: list[Failure], reactions: list[Failure], blamed: dict[str, str], pservers: list[str]
) -> Cause:
    counts = collections.Counter(blamed.values())
    by_role = {failure.role: failure for failure in failures}
    order = list(counts)
    # Of those that are named equally often, one that has not reacted itself.
    order.sort(key=lambda role: (role not in by_role or not by_role[role].stopped, -counts[role], role in blamed))
    role = order[0]
    first = next(one for one in reactions if blamed.get(one.role) == role)
    failure = by_role.get(role, first)  # a role may be to blame although its process ended well
    if failure.role == role and failure.stopped:
        return Cause(failure, role, "was stopped by a signal")
    if failure.role == role and failure.kind == REACTED:
        seen = [one.role for one in reactions if blamed.get(one.role) == role and _saw_itself(one, pservers)]
        if len(seen) > 1:
            return Cause(failure, role, f"lost its connections to {' and '.join(sorted(seen))}")
        other = blamed.get(role)
        if other is not None and blamed.get(other) == role:
            ends = " and ".join(sorted((role, other)))
            return Cause(failure, sentence=f"the connection between {ends} broke")
    return Cause(failure, sentence=first.note)


def _saw_itself(reaction: Failure, pservers: list[str]) -> bool:
    """Returns whether the role noticed the failure at its own connection. Others tell it what they have noticed."""
    seen = reaction.note.rpartition("seen by ")[2]
    return bool(seen) and named_in(seen, pservers)[:1] == [reaction.role]
