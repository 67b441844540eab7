"""The reader of environment variables. The table of framework/base/environment.cc states all variables with their types
and ranges, for C++ and Python; no other code reads them.

    environment.value('PADDLE_TRAINERS_NUM', 1)        # an int; a value that is not in its range is an error
    environment.listed('PADDLE_TRAINER_ENDPOINTS')     # [] if it is not set

`environment` is a mapping such as os.environ, which is the default.
"""

import os

from penstock import _penstock


def text(name, otherwise="", environment=None):
    """Returns the variable as it is, or `otherwise` if it is not set."""
    if name not in _NAMES:
        raise KeyError(f"{name} is not in the table of framework/base/environment.cc")
    return (os.environ if environment is None else environment).get(name, otherwise)


def value(name, otherwise=None, environment=None):
    """Returns the variable as a bool, int, float or str, as the table states; `otherwise` if it is empty or not set.

    Raises:
        ProgramError: E-environment: it has another value.
    """
    found = _penstock.parse_setting(name, _readable(text(name, "", environment)))
    return otherwise if found is None else found


def listed(name, environment=None):
    """Returns the parts of a comma-separated list, without spaces and without empty parts."""
    return [part.strip() for part in text(name, "", environment).split(",") if part.strip()]


def check(environment):
    """Raises the error of the first variable of the mapping that has a value which it does not take."""
    for name in sorted(_NAMES & set(environment)):
        value(name, None, environment)


def _readable(given):
    """The environment may contain bytes that are not UTF-8."""
    return given.encode(errors="surrogateescape").decode(errors="replace")


_NAMES = frozenset(_penstock.setting_names())
