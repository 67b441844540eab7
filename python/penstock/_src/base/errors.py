"""Errors that only Python can find, in the format of those from C++: with an id, as `error.id` and behind the message.

Errors about programs, jobs, files and peers have an id, which python/docs/errors.tsv explains. A TypeError, ValueError,
IndexError or KeyError that names a wrong argument of the called function has none.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock._penstock import DataError, ProgramError, StateError

if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import TypeVar

    _Error = TypeVar("_Error", bound=BaseException)


def program_error(id: str, message: str, *details: str) -> ProgramError:
    """Returns a ProgramError to raise: `message   [id]`, then one line for each detail."""
    return _error(ProgramError, id, message, details)


def state_error(id: str, message: str, *details: str) -> StateError:
    """Returns a StateError to raise, like program_error."""
    return _error(StateError, id, message, details)


def data_error(id: str, message: str, *details: str) -> DataError:
    """Returns a DataError to raise, like program_error."""
    return _error(DataError, id, message, details)


def not_built(message: str, *details: str) -> NotImplementedError:
    """Returns a NotImplementedError to raise for a part of Fluid, or a combination of settings, that is not built."""
    return error_with_id(NotImplementedError, "E-not-built", message, *details)


def error_with_id(kind: type[_Error], id: str, message: str, *details: str) -> _Error:
    """Returns an error of another class to raise, like program_error."""
    return _error(kind, id, message, details)


def suggestion(name: str, known: Iterable[str], most: int = 1) -> str:
    """Returns the end of a message about an unknown name: '; did you mean <the nearest known names>?', or ''."""
    import difflib  # few processes need it

    near = difflib.get_close_matches(name, known, n=most)
    return f"; did you mean {', '.join(near)}?" if near else ""


def _error(kind: type[_Error], id: str, message: str, details: tuple[str, ...]) -> _Error:
    error = kind("\n  ".join((f"{message}   [{id}]",) + details))
    error.id = id  # type: ignore[attr-defined]  # an attribute of all errors of this package
    error.details = list(details)  # type: ignore[attr-defined]
    return error
