"""The reader of environment variables. The table of framework/base/environment.cc states all variables with their types
and ranges, for C++ and Python; no other code reads them.

    environment.value('PADDLE_TRAINERS_NUM', 1)        # an int; a value that is not in its range is an error
    environment.listed('PADDLE_TRAINER_ENDPOINTS')     # [] if it is not set

`environment` is a mapping such as os.environ, which is the default.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, overload

from penstock import _penstock

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import TypeVar, Union

    Setting = Union[bool, int, float, str]
    _Setting = TypeVar("_Setting", bool, int, float, str)


@overload
def text(name: str, otherwise: str = "", environment: Mapping[str, str] | None = None) -> str: ...
@overload
def text(name: str, otherwise: None, environment: Mapping[str, str] | None = None) -> str | None: ...
def text(name: str, otherwise: str | None = "", environment: Mapping[str, str] | None = None) -> str | None:
    """Returns the variable as it is, or `otherwise` if it is not set."""
    if name not in _NAMES:
        raise KeyError(f"{name} is not in the table of framework/base/environment.cc")
    return (os.environ if environment is None else environment).get(name, otherwise)


@overload
def value(name: str, otherwise: None = None, environment: Mapping[str, str] | None = None) -> Setting | None: ...
@overload
def value(name: str, otherwise: _Setting, environment: Mapping[str, str] | None = None) -> _Setting: ...
def value(name: str, otherwise: Setting | None = None, environment: Mapping[str, str] | None = None) -> Setting | None:
    """Returns the variable as a bool, int, float or str, as the table states; `otherwise` if it is empty or not set.

    Raises:
        ProgramError: E-environment: it has another value.
    """
    found = _penstock.parse_setting(name, _readable(text(name, "", environment)))
    return otherwise if found is None else found


def listed(name: str, environment: Mapping[str, str] | None = None) -> list[str]:
    """Returns the parts of a comma-separated list, without spaces and without empty parts."""
    return [part.strip() for part in text(name, "", environment).split(",") if part.strip()]


def change(values: Mapping[str, str]) -> None:
    """Sets variables of this process, and of those that it starts later."""
    os.environ.update(values)


def check(environment: Mapping[str, str]) -> None:
    """Raises the error of the first variable of the mapping that has a value which it does not take."""
    for name in sorted(_NAMES & set(environment)):
        value(name, None, environment)


def _readable(given: str) -> str:
    """The environment may contain bytes that are not UTF-8."""
    return given.encode(errors="surrogateescape").decode(errors="replace")


_NAMES = frozenset(_penstock.setting_names())
