"""Modules of Fluid that Penstock does not have. They can be imported, because scripts import modules that they may not
use; any use raises an error with the reason.

    __path__, __getattr__ = absent('fluid.contrib.slim', 'prune and quantize with ...')    # the whole module
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock._src.base.errors import not_built

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import NoReturn


class _Submodules:
    """The __path__ of a package: an import of one of its submodules iterates over it, which raises the error."""

    def __init__(self, message: str) -> None:
        self._message = message

    def __iter__(self) -> NoReturn:
        raise not_built(self._message)


def absent(module: str, why: str) -> tuple[_Submodules, Callable[[str], NoReturn]]:
    """Returns (__path__, __getattr__) of a module whose names and submodules are all missing, for one reason."""
    text = "%s%s: " + why

    def missing(name: str) -> NoReturn:
        if name.startswith("_"):
            raise AttributeError(f"module {module} has no attribute {name}")
        raise not_built(text % (module, "." + name))

    return _Submodules(text % (module, "")), missing


def absent_names(module: str, names: tuple[str, ...], why: str) -> Callable[[str], NoReturn]:
    """__getattr__ of a module of which some names are missing, for one reason."""

    def missing(name: str) -> NoReturn:
        if name in names:
            raise not_built(f"{module.partition('.')[2]}.{name}: {why}")
        raise AttributeError(f"{module} has no {name}")

    return missing
