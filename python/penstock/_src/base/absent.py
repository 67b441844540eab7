"""Modules of Fluid that Penstock does not have. They can be imported, because scripts import modules that they may not
use; any use raises an error with the reason.

    __path__, __getattr__ = absent('fluid.contrib.slim', 'prune and quantize with ...')    # the whole module

    @refuses("Dataset.{method} is not built")                                              # a method
    def set_rank_offset(self, rank_offset: str) -> None:
        '''Not built: it belongs to Fluid's page views.'''
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar, cast

from penstock._src.base.doc_texts import composed, parameters
from penstock._src.base.errors import not_built

if TYPE_CHECKING:
    from typing import NoReturn

F = TypeVar("F", bound=Callable[..., None])


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


def refuses(message: str) -> Callable[[F], F]:
    """Decorates a method that has only a docstring: it raises NotImplementedError. The docstring gets its arguments.

    message  may contain {method}, the method's name, and {kind}, the object's class
    """

    def decorate(method: F) -> F:
        @functools.wraps(method)
        def refuse(self: Any, *args: Any, **kwargs: Any) -> None:
            method(self, *args, **kwargs)  # Python checks the arguments
            raise not_built(message.format(method=method.__name__, kind=type(self).__name__))

        refuse.__doc__ = _refused_doc(method)
        return cast("F", refuse)

    return decorate


def _refused_doc(method: Callable[..., Any]) -> str:
    kinds = {name: "object" if kind == "Any" else kind for name, kind in method.__annotations__.items()}
    named = {name: label for name, label in parameters(method).items() if name != "self"}
    sections = {
        "Args": [f"    {label} ({kinds[name]}): not used." for name, label in named.items()],
        "Raises": ["    NotImplementedError: always."],
    }
    return composed(method.__doc__ or "", sections)
