"""What each public module ends with: facade.make(__name__) gives its names the path that users see.

    from penstock._src.layers.conv import conv2d as conv2d      # penstock/fluid/layers/nn.py

    facade.make(__name__)       # conv2d.__module__ is 'penstock.fluid.layers.nn'

A name of several public modules belongs to one of them; for the others it is `elsewhere`.
"""

from __future__ import annotations

import importlib
import sys
import types
from typing import TYPE_CHECKING

from penstock._src.base.bad_arguments import guard_modules
from penstock._src.names.not_built import getattr_of

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import ModuleType
    from typing import Any


_IMPLEMENTATION = "penstock._src."
_roots: dict[
    str, list[tuple[ModuleType, Sequence[str]]] | None
] = {}  # root package -> [(module, names elsewhere)] that wait for its import to end, or None: it has ended
_guarded: set[str] = set()  # modules of the implementation whose functions name a wrong argument


class _Facade(types.ModuleType):
    """A public module. What a script sets in it is set in the implementation too, as Fluid's modules are one."""

    def __setattr__(self, name: str, value: Any) -> None:
        old = vars(self).get(name)
        if old is not None and not isinstance(value, types.ModuleType) and not name.startswith("__"):
            for module in _implementation():
                if vars(module).get(name) is old:
                    setattr(module, name, value)
        super().__setattr__(name, value)


def make(name: str, elsewhere: Sequence[str] = (), later: Sequence[str] = ()) -> None:
    """Makes the imported module `name` a public one.

    Args:
        name (str): the module, below penstock.fluid or penstock.hvd.
        elsewhere (tuple | list): its names that have the path of another public module.
        later (list): its modules that are imported when a script first uses them.
    """
    module = sys.modules[name]
    vars(module).setdefault("__getattr__", getattr_of(name, later))
    module.__class__ = _Facade
    root = ".".join(name.split(".")[:2])
    waiting = _roots.setdefault(root, [])
    if waiting is not None:
        waiting.append((module, elsewhere))
        if name != root:
            return
        _roots[root] = None
    _publish(waiting or [(module, elsewhere)])


def load(source: str, name: str, public: str) -> Any:
    """Imports a module of the implementation, and returns its `name` as a name of the public module `public`."""
    module = importlib.import_module(source)
    guard_new_modules()
    value = getattr(module, name)
    _set_module(value, public)
    return value


def guard_new_modules() -> None:
    """Gives the functions of modules that have been imported since the last call their errors about arguments."""
    new = [module for module in _implementation() if module.__name__ not in _guarded]
    _guarded.update(module.__name__ for module in new)
    guard_modules(new)


def _implementation() -> list[ModuleType]:
    return [module for name, module in list(sys.modules.items()) if name.startswith(_IMPLEMENTATION) and module]


def _publish(modules: list[tuple[ModuleType, Sequence[str]]]) -> None:
    guard_new_modules()
    for module, listed in modules:
        elsewhere = frozenset(listed)
        for name, value in vars(module).items():
            if name not in elsewhere and isinstance(value, (types.FunctionType, type)):
                _set_module(value, module.__name__)
    for module, _ in modules:
        for value in vars(module).values():
            if isinstance(value, type) and not value.__module__.startswith(_IMPLEMENTATION):
                for base in value.__mro__[1:]:
                    if base.__module__.startswith(_IMPLEMENTATION):  # a base class that users do not see
                        _set_module_of_members(base, value.__module__)


def _set_module(value: Any, name: str) -> None:
    """Sets the path of a function, or of a class and its methods, as users see it."""
    if not value.__module__.startswith(_IMPLEMENTATION):
        return
    value.__module__ = name
    _set_module_of_members(value, name)


def _set_module_of_members(value: Any, name: str) -> None:
    """Sets the path of a class's methods, and of what a decorated function wraps."""
    for member in list(vars(value).values()):
        function = getattr(member, "__func__", member)
        if isinstance(function, types.FunctionType):
            _set_module(function, name)
