"""What each public module ends with: facade.make(__name__) gives it the names that the table has for it.

    facade.make(__name__)       # penstock.fluid.layers.nn.conv2d is that of penstock._src.layers.conv

A name is loaded when a script first uses it: Python asks the module's __getattr__, which imports the module of the
implementation and keeps the value. What has just been imported gets the paths that users see (`__module__`), and its
functions name a wrong argument. A name of several public modules belongs to one of them; for the others it is
`elsewhere`.
"""

from __future__ import annotations

import importlib
import sys
import types
from typing import TYPE_CHECKING as TYPE_CHECKING

from penstock._src.base.bad_arguments import guard_modules
from penstock._src.base.errors import suggestion
from penstock._src.names.not_built import NAMES, list_of
from penstock._src.names.table import names_of, owned_names

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from types import ModuleType
    from typing import Any

    from penstock._src.names.table import Source

_PACKAGE, _IMPLEMENTATION, _LAYERS = "penstock.", "penstock._src.", "penstock.fluid.layers"
_published: set[str] = set()  # modules of the implementation whose names have the paths that users see


class _Facade(types.ModuleType):
    """A public module. What a script sets in it is set in the implementation too, as Fluid's modules are one."""

    def __setattr__(self, name: str, value: Any) -> None:
        source = names_of(self.__name__).get(name)
        if isinstance(value, types.ModuleType):
            if source and value.__name__ == f"{self.__name__}.{name}" and not source.is_module:
                return  # Python has just imported fluid/data.py, and fluid.data is a function
        elif source and not name.startswith("__"):
            old = getattr(self, name)
            for module in _implementation():
                if vars(module).get(name) is old:
                    setattr(module, name, value)
        super().__setattr__(name, value)

    def __dir__(self) -> list[str]:
        return sorted({*vars(self), *names_of(self.__name__)})


def make(name: str) -> None:
    """Makes the imported module `name`, below penstock.fluid or penstock.hvd, a public one."""
    module, known = sys.modules[name], names_of(name)
    if "__getattr__" in known:  # the implementation answers for names that are missing
        vars(module).update({one: _value(source) for one, source in known.items()})
    else:
        vars(module)["__getattr__"] = _getattr_of(module, known)
    module.__class__ = _Facade


def _getattr_of(module: ModuleType, known: Mapping[str, Source]) -> Callable[[str], Any]:
    """Returns the __getattr__ of a public module, which Python calls for missing attributes.

    Fluid's scripts reach a layer through other modules than the one that defines it, because those import it, so every
    module of layers answers with every layer.
    """

    def missing(name: str) -> Any:
        if name in known:
            value = vars(module)[name] = _value(known[name])
            return value
        path = module.__name__
        contrib = path == "penstock.fluid.contrib.layers"
        if (contrib or path.startswith(_LAYERS + ".")) and not name.startswith("__"):
            layers = importlib.import_module(_LAYERS)
            if contrib or name in names_of(_LAYERS) or name in vars(layers):
                return getattr(layers, name)
        message = f"{path} has no {name}"
        if not name.startswith("_"):
            listed = NAMES.get(list_of(path), ())
            if name in listed:
                message = f"{path}.{name} is part of Fluid 1.8, but not built yet"
            else:
                there = [one for one in {**known, **vars(module)} if not one.startswith("_")]
                message += suggestion(name, there + list(listed), most=3)
        raise AttributeError(message)

    return missing


def _value(source: Source) -> Any:
    if source.is_module:
        return importlib.import_module(f"{_PACKAGE}{source.module}.{source.name}")
    return load(_PACKAGE + source.module, source.name)


def load(source: str, name: str) -> Any:
    """Imports a module, and returns its `name`."""
    module = importlib.import_module(source)
    if source not in _published:
        _publish()
    return getattr(module, name)


def _implementation() -> list[ModuleType]:
    return [module for name, module in list(sys.modules.items()) if name.startswith(_IMPLEMENTATION) and module]


def _publish() -> None:
    """Gives what has been imported since the last call errors about arguments, and the paths that users see."""
    new = [
        module
        for module in _implementation()
        if module.__name__ not in _published and not getattr(module.__spec__, "_initializing", False)
    ]
    _published.update(module.__name__ for module in new)
    guard_modules(new)
    classes = []
    for module in new:
        for name, public in owned_names(module.__name__[len(_PACKAGE) :]).items():
            value = vars(module)[name]
            if isinstance(value, (types.FunctionType, type)):
                _set_module(value, public)
            if isinstance(value, type) and not value.__module__.startswith(_IMPLEMENTATION):
                classes.append((module.__name__, value))
    for same in (True, False):  # a base class that users do not see has the path of a class beside it, if there is one
        for module_name, value in classes:
            for base in value.__mro__[1:]:
                if base.__module__.startswith(_IMPLEMENTATION) and (base.__module__ == module_name) is same:
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
