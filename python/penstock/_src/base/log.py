"""Log lines of Python code, in the format of those from C++: time, severity, file and line, role."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from penstock import _penstock
from penstock._src.base import environment as _environment

if TYPE_CHECKING:
    from collections.abc import Mapping


def role_of(environment: Mapping[str, str] | None = None) -> str:
    """Returns the role of this process as the environment states it, such as "trainer 0" or "pserver 1"; otherwise
    ""."""

    def given(name: str) -> str:
        return _environment.text(name, "", environment)

    kind = given("TRAINING_ROLE") or given("PADDLE_TRAINING_ROLE")
    name, variable = {"PSERVER": ("pserver", "PADDLE_PSERVER_ID"), "TRAINER": ("trainer", "PADDLE_TRAINER_ID")}.get(
        kind.upper(), ("", "")
    )
    index = given(variable) if variable else ""
    return f"{name} {index}" if name and index else ""


def info(text: str) -> None:
    _log(0, text)


def warning(text: str) -> None:
    _log(1, text)


def error(text: str) -> None:
    _log(2, text)


def _log(severity: int, text: str) -> None:
    caller = sys._getframe(2)
    _penstock.log(severity, str(text), caller.f_code.co_filename, caller.f_lineno)


def name_process() -> None:
    """Makes all further log lines of this process contain its role, if the environment states it."""
    if role_of():
        _penstock.set_log_role(role_of())
