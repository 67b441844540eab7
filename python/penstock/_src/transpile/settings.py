"""The table of settings: what C++ says of each, for fields, arguments and their documentation.

    for row in ROWS:
        row.name, row.field, row.initial      # 'dc_asgd', 'enable_dc_asgd', False

A face is one of the ways in which users give settings: `field` of DistributeTranspilerConfig, `argument` of
penstock.transpile, `rank_argument` of penstock.transpile_ranks. The table is transpiler/plan/settings.def; C++ checks
the values.
"""

from __future__ import annotations

import functools
import inspect
import re
import textwrap
import types
from typing import TYPE_CHECKING

from penstock import _penstock
from penstock._src.base.errors import suggestion

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any, TypeVar

    from typing_extensions import ParamSpec

    P = ParamSpec("P")
    R = TypeVar("R")

WIDTH = 120
GROUPS = ("placement", "mode", "policies", "ranks")

ROWS: tuple[types.SimpleNamespace, ...] = tuple(types.SimpleNamespace(**row) for row in _penstock.settings())
ROW: dict[str, types.SimpleNamespace] = {row.name: row for row in ROWS}

# What Python gives in its own form: the type and the default of a field, and those of an argument.
_FORMS: dict[str, dict[str, tuple[str, Any]]] = {
    "placement": {"field": ("type | None", None), "argument": ("str | type", ROW["placement"].initial)},
    "dense": {"field": ("dict | str | None", None), "argument": ("dict | str | None", None)},
    "collective_mode": {"field": ("str | None", None)},
    "sync_mode_argument": {"argument": ("bool", True)},
    "sync_mode_field": {"field": ("bool", True)},
}
_SECTION = re.compile(r"^( *)<settings: (\w+)>\n", re.MULTILINE)


@functools.cache
def rows_of(face: str) -> dict[str, types.SimpleNamespace]:
    """Returns {name in the face: row}, by groups, in the order of the table."""
    rows = sorted(ROWS, key=lambda row: GROUPS.index(row.group))
    return {getattr(row, face): row for row in rows if getattr(row, face)}


def initial_of(row: types.SimpleNamespace, face: str) -> Any:
    """Returns the default of a setting in a face."""
    return _form(row, face)[1]


def type_of(row: types.SimpleNamespace, face: str) -> str:
    """Returns the type of a setting in a face, as documentation names it."""
    return _form(row, face)[0]


def give(config: Any, face: str, values: Mapping[str, object]) -> None:
    """Sets settings of a native configuration from {name in the face: value}; C++ checks the values. Bounds of
    fields are checked at once, of arguments with the combination of all settings."""
    for name, value in values.items():
        config.give(rows_of(face)[name].name, name, value, face == "field")


def in_signature(face: str) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Returns a decorator for a function whose last parameter is `**given`: the settings of the face become its
    keyword-only parameters, with their defaults, and its docstring documents them where it says
    `<settings: face>`."""

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        own = inspect.signature(function)
        rows = rows_of(face)
        defaults = {name: initial_of(row, face) for name, row in rows.items()}
        keywords = [
            inspect.Parameter(
                name, inspect.Parameter.KEYWORD_ONLY, default=defaults[name], annotation=type_of(row, face)
            )
            for name, row in rows.items()
        ]

        @functools.wraps(function)
        def call(*args: P.args, **given: P.kwargs) -> R:
            for name in given:
                if name not in signature.parameters:
                    raise TypeError(
                        f"{function.__name__}() got an unexpected keyword argument {name!r}"
                        f"{suggestion(name, list(signature.parameters))}"
                    )
            return function(*args, **{**defaults, **given})

        signature = own.replace(parameters=[*list(own.parameters.values())[:-1], *keywords])
        call.__signature__ = signature  # type: ignore[attr-defined]  # what inspect shows
        call.__doc__ = documented(function.__doc__)
        return call

    return decorate


def documented(text: str | None) -> str | None:
    """Returns a docstring in which the entries of all settings of a face replace the line `<settings: face>`."""
    return text and _SECTION.sub(lambda found: _entries(found[2], found[1]), text)


def _entries(face: str, indent: str) -> str:
    return "".join(_entry(name, row, face, indent) for name, row in rows_of(face).items())


def _entry(name: str, row: types.SimpleNamespace, face: str, indent: str) -> str:
    return (
        textwrap.fill(
            f"{name} ({type_of(row, face)}): {said_of(row)}",
            WIDTH,
            initial_indent=indent,
            subsequent_indent=indent + "    ",
            break_long_words=False,
            break_on_hyphens=False,
        )
        + "\n"
    )


def said_of(row: types.SimpleNamespace) -> str:
    """Returns what a setting does, as sentences."""
    return f"{row.doc}." + (f" {row.more}" if row.more else "")


def _form(row: types.SimpleNamespace, face: str) -> tuple[str, Any]:
    plain = (f"{row.type} | None" if row.optional else row.type, row.initial)
    return _FORMS.get(row.name, {}).get(face, plain)
