"""The forms of the messages that launchers exchange.

    member = read_member(message["member"])      # a machine's part of the job
    facts = read_facts(message, nodes, token)    # what node 0 sends once all have joined
    event = read_event(message, nodes)           # what a launcher reports later

A message of another form raises MessageError, whatever it contains.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from penstock._src.launch.channel import ChannelError
from penstock._src.launch.plan import Member

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from penstock._src.launch.channel import Message


LINE_MAX = 2000


class MessageError(ChannelError):
    """The sender does not follow the launchers' protocol."""


@dataclasses.dataclass(frozen=True)
class Facts:
    """The facts on which the launchers agreed."""

    members: tuple[Member, ...]  # by node
    job_id: str
    token: str


def read_member(value: object) -> Member:
    """Returns the Member that a launcher describes."""
    if not isinstance(value, dict):
        raise MessageError("its description of the machine cannot be parsed")
    return Member(**{key: _words(value.get(key)) for key in ("pservers", "trainers", "endpoints")})


def read_facts(message: Message, nodes: Sequence[str], token: str) -> Facts:
    """Returns the Facts of node 0's message; `token` is the secret that this launcher was given, or ""."""
    members = message.get("members")
    if not isinstance(members, list) or len(members) != len(nodes):
        raise MessageError("it speaks another version of the launcher")
    return Facts(tuple(map(read_member, members)), _word(message.get("job_id")), token or _word(message.get("token")))


def read_event(message: Message, nodes: int) -> dict[str, Any]:
    """Returns the event of a message, of which every field has its type; `nodes` is the number of machines."""
    name, node = message.get("event"), message.get("node")
    if type(node) is not int or not 0 <= node < nodes:
        raise MessageError("it sent an event of an unknown machine")
    event: dict[str, Any] = {"event": name, "node": node}
    if name == "end":
        failure = message.get("failure")
        event["kind"] = _text(message.get("kind"))
        event["failure"] = None if failure is None else _failure(failure)
    elif name == "rank":
        event.update(_of_rank(message))
    elif name in ("hang", "stop", "lost"):
        event["why"] = _text(message.get("why"))
    elif name in ("report", "saved"):  # about a role that was restarted, how to continue a stopped job; printed
        event["why"] = "".join(c if c.isprintable() else " " for c in _text(message.get("why"))[:LINE_MAX])
    elif name not in ("done", "asked"):
        raise MessageError("it sent an event that this version of the launcher does not know")
    return event


def _of_rank(message: Message) -> dict[str, Any]:
    """Returns what has happened to an elastic rank (elastic.py)."""
    rank, what = message.get("rank"), message.get("what")
    if type(rank) is not int or rank < 0 or what not in ("begins", "asks", "ends", "late"):
        raise MessageError("it sent an event of a rank that cannot be parsed")
    facts: dict[str, Any] = {"rank": rank, "what": what}
    if what == "asks":
        facts["address"] = _word(message.get("address"))
    elif what == "ends":
        failure = message.get("failure")
        facts["failure"] = None if failure is None else _failure(failure)
    elif what == "late":
        facts["why"] = _text(message.get("why"))[:LINE_MAX]
    return facts


def _failure(value: object) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise MessageError("it sent a failure that cannot be parsed")
    lines = value.get("lines")
    if not isinstance(lines, list) or not all(isinstance(line, str) for line in lines):
        raise MessageError("it sent a failure that cannot be parsed")
    texts = {key: _text(value.get(key)) for key in ("who", "kind", "log", "words", "role", "outcome", "note")}
    return {**texts, "lines": lines, "stopped": value.get("stopped") is True, "met": value.get("met") is not False}


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise MessageError("it sent a value that is not a text")
    return value


def _word(value: object) -> str:
    """Returns a text without control characters, because it becomes part of an environment."""
    text = _text(value)
    if not text.isprintable():
        raise MessageError("it sent an address or a name with control characters")
    return text


def _words(value: object) -> tuple[str, ...]:
    if not isinstance(value, list):
        raise MessageError("it sent a value that is not a list of texts")
    return tuple(map(_word, value))
