"""Fluid's fleet based on pslib, a library that is not public: any use raises an error that says so."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock._src.base.errors import error_with_id

if TYPE_CHECKING:
    from typing import NoReturn


def __getattr__(name: str) -> NoReturn:
    if name.startswith("__"):
        raise AttributeError(name)
    raise error_with_id(
        ImportError,
        "E-not-built",
        "fleet.parameter_server.pslib needs pslib, a library of Baidu that is not public; "
        "fleet.parameter_server.distribute_transpiler has the same interface",
    )
