"""Keys of a store, and the values that a call gives for each of them.

pairs([3, 5], [a, [b, c]], "push")       # [(3, [a]), (5, [b, c])]: one value per device
"""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Union

from penstock._src.base.errors import program_error

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import Any, TypeVar

    from typing_extensions import TypeGuard

    _Given = TypeVar("_Given")

Key = Union[int, str]
Keys = Union[int, str, "Sequence[int | str]"]


def to_key(key: object, call: str) -> Key:
    """Returns a key: a text, or an integer of any size.

    Raises:
        TypeError: it is neither.
    """
    if isinstance(key, str):
        return key
    try:
        return operator.index(key)  # type: ignore[arg-type]
    except TypeError:
        raise TypeError(f"kv.{call}: a key is an int or a str, not {type(key).__name__}") from None


def is_list(given: object) -> TypeGuard[Sequence[Any]]:
    return isinstance(given, (list, tuple))


def pairs(key: object, given: object, call: str, argument: str = "value") -> list[tuple[Key, list[object]]]:
    """Returns each key with the list of what is given for it, one for each device. A list of keys takes a list of the
    same length; for each key it has one value, or a list of them.

    Raises:
        TypeError: a key is neither int nor str; a list of keys comes with something that is no list.
        ValueError: the lists differ in length, or a key has an empty list.
    """
    if not isinstance(key, (list, tuple)):
        values = list(given) if isinstance(given, (list, tuple)) else [given]
        if not values:
            raise ValueError(f"kv.{call}: {argument} of key {key!r} is an empty list")
        return [(to_key(key, call), values)]
    if not isinstance(given, (list, tuple)):
        raise TypeError(f"kv.{call}: {len(key)} keys take a list of as many, but {argument} is {type(given).__name__}")
    if len(key) != len(given):
        raise ValueError(f"kv.{call}: {len(key)} keys, but {argument} has {len(given)} elements")
    found: list[tuple[Key, list[object]]] = []
    for one, values in zip(key, given):
        if type(one) is str and not isinstance(values, (list, tuple)):  # the usual case, without a call
            found.append((one, [values]))
        else:
            found += pairs(one, values, call, argument)
    return found


def by_key(found: Iterable[tuple[Key, list[_Given]]]) -> list[tuple[Key, list[_Given]]]:
    """Returns the pairs with the values of a key that is named several times in one list."""
    joined: dict[Key, list[_Given]] = {}
    for key, values in found:
        joined.setdefault(key, []).extend(values)
    return list(joined.items())


def check_new(keys: Sequence[Key], known: Iterable[Key]) -> None:
    """Raises ProgramError if keys cannot be added to those of a store: E-kv-key-again, E-kv-key-kinds."""
    have: set[Key] = set(known)
    kinds = {type(key) for key in have}
    for key in keys:
        if key in have:
            raise program_error(
                "E-kv-key-again", f"kv.init: key {key!r} has a value already; a key is initialized once"
            )
        have.add(key)
        kinds.add(type(key))
        if len(kinds) > 1:
            raise program_error(
                "E-kv-key-kinds",
                f"kv.init: key {key!r} is {type(key).__name__}, but the store has keys of the other type",
                "all keys of a store are int, or all are str",
            )
