"""Errors that only Python can find, in the format of those from C++: with an id, as `error.id` and behind the message.

Errors about programs, jobs, files and peers have an id, which python/docs/errors.tsv explains. A TypeError, ValueError,
IndexError or KeyError that names a wrong argument of the called function has none.
"""

import difflib

from penstock._penstock import DataError, ProgramError, StateError


def program_error(id, message, *details):
    """Returns a ProgramError to raise: `message   [id]`, then one line for each detail."""
    return _error(ProgramError, id, message, details)


def state_error(id, message, *details):
    """Returns a StateError to raise, like program_error."""
    return _error(StateError, id, message, details)


def data_error(id, message, *details):
    """Returns a DataError to raise, like program_error."""
    return _error(DataError, id, message, details)


def not_built(message, *details):
    """Returns a NotImplementedError to raise for a part of Fluid, or a combination of settings, that is not built."""
    return error_with_id(NotImplementedError, "E-not-built", message, *details)


def error_with_id(kind, id, message, *details):
    """Returns an error of another class to raise, like program_error."""
    return _error(kind, id, message, details)


def suggestion(name, known, most=1):
    """Returns the end of a message about an unknown name: '; did you mean <the nearest known names>?', or ''."""
    near = difflib.get_close_matches(name, known, n=most)
    return f"; did you mean {', '.join(near)}?" if near else ""


def _error(kind, id, message, details):
    error = kind("\n  ".join((f"{message}   [{id}]",) + details))
    error.id = id
    error.details = list(details)
    return error
