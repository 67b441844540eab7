"""The forms of the messages between trainers and trainer 0 about shares of the work.

A message of another form raises MessageError, whatever it contains.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from penstock._src.launch.channel import ChannelError
from penstock._src.work.record import Record

if TYPE_CHECKING:
    from typing import Any

    from penstock._src.launch.channel import Message
    from penstock._src.work.portions import Portion, Portions


TEXT_MAX = 200
WORKED_MAX = 100_000  # portions in a record


class MessageError(ChannelError):
    """The sender does not follow the protocol."""


@dataclasses.dataclass(frozen=True)
class Hello:
    rank: int
    shares: int  # which Shares of the process: the first, the second, ...
    facts: dict[str, int]  # their settings, which are equal in all processes
    process: str  # a name that no other process has
    where: str  # where it runs, for the others of its machine
    asked: int = 0  # requests that it has had answers to
    record: Record = dataclasses.field(default_factory=Record)  # of these, with staleness 0


@dataclasses.dataclass(frozen=True)
class Request:
    number: int  # from 1; a request that is sent again has its number again
    event: str  # begin, take, end
    epoch: int = 0
    first: int = 0
    round: int = 0


def hello_message(hello: Hello) -> Message:
    return {"event": "hello", **dataclasses.asdict(hello)}


def read_hello(message: Message, workers: int) -> Hello:
    facts = message.get("facts")
    if message.get("event") != "hello" or not isinstance(facts, dict) or len(facts) > TEXT_MAX:
        raise MessageError("its hello cannot be parsed")
    rank = _number(message, "rank")
    if not 0 < rank < workers:
        raise MessageError(f"it says that it is trainer {rank} of {workers}")
    return Hello(
        rank,
        _number(message, "shares"),
        {_text(name): _whole(value) for name, value in facts.items()},
        _text(message.get("process")),
        _text(message.get("where")),
        _number(message, "asked"),
        _read_record(message.get("record")),
    )


def _read_record(given: Any) -> Record:
    worked = given.get("worked") if isinstance(given, dict) else None
    if not isinstance(worked, list) or len(worked) > WORKED_MAX:
        raise MessageError("the record of its work cannot be parsed")
    pairs = [(_whole(one[0]), _read_portion(one[1])) for one in worked if isinstance(one, list) and len(one) == 2]
    taken = None if given.get("taken") is None else _read_portion(given["taken"])
    epoch, round = _whole(given.get("epoch")), _number(given, "round")
    return Record(epoch, round, bool(given.get("there")), bool(given.get("over")), taken, pairs)


def _read_portion(given: Any) -> Portion:
    if not isinstance(given, list) or len(given) != 3:
        raise MessageError("it names no portion")
    return _whole(given[0]), _whole(given[1]), _whole(given[2])


def request_message(request: Request) -> Message:
    return dataclasses.asdict(request)


def read_request(message: Message) -> Request:
    event = message.get("event")
    if event not in ("begin", "take", "end"):
        raise MessageError("it asks for what this version does not know")
    return Request(event=event, **{name: _number(message, name) for name in ("number", "epoch", "first", "round")})


def answer_message(number: int, portion: Portion | None) -> Message:
    return {"event": "answer", "number": number, "portion": None if portion is None else list(portion)}


def read_answer(message: Message, portions: Portions) -> tuple[int, Portion | None]:
    """Returns the number of the request, and the portion."""
    given = message.get("portion")
    if given is None:
        return _number(message, "number"), None
    portion = _read_portion(given)
    if not portions.is_portion(portion):
        raise MessageError(f"it gives the portion {given}, which does not exist")
    return _number(message, "number"), portion


def waits_message(holders: list[int]) -> Message:
    return {"event": "waits", "for": holders}


def read_waits(message: Message) -> list[int]:
    given = message.get("for")
    if not isinstance(given, list):
        raise MessageError("its message cannot be parsed")
    return [_whole(one) for one in given]


def _number(message: Message, name: str) -> int:
    value = _whole(message.get(name))
    if value < 0:
        raise MessageError(f"its {name} is {value}")
    return value


def _whole(value: Any) -> int:
    if type(value) is not int or abs(value) >= 1 << 62:
        raise MessageError("it sent a value that is not an integer")
    return value


def _text(value: Any) -> str:
    if not isinstance(value, str) or len(value) > TEXT_MAX:
        raise MessageError("it sent a value that is not a short text")
    return value
