"""Makes the modules of penstock.fluid available as `paddle.fluid...`: the same objects under both names."""

import importlib
import importlib.abc
import importlib.util
import sys

THEIRS, OURS = "paddle.fluid", "penstock.fluid"


def install():
    """Installs the finder before all other finders, once."""
    if not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Finder())


def share_loaded():
    """Registers every loaded module of penstock.fluid under its second name.

    When Python imports a submodule, it sets the module as an attribute of its package. If the package has a function
    with the same name (fluid.data), this must not happen again under the second name, so the second name must be
    registered before it is imported.
    """
    for name, module in list(sys.modules.items()):
        if name == OURS or name.startswith(OURS + "."):
            sys.modules.setdefault(THEIRS + name[len(OURS) :], module)


class _Finder(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name != THEIRS and not name.startswith(THEIRS + "."):
            return None
        ours = OURS + name[len(THEIRS) :]
        try:
            module = importlib.import_module(ours)
        except ModuleNotFoundError as error:
            if error.name is None or not (ours + ".").startswith(error.name + "."):
                raise  # the module exists, but a module that it imports does not
            return None
        return importlib.util.spec_from_loader(name, _Loaded(module), is_package="__path__" in vars(module))


class _Loaded(importlib.abc.Loader):
    """Returns a module that is already loaded."""

    def __init__(self, module):
        self._module = module
        self._spec = module.__spec__

    def create_module(self, spec):
        return self._module

    def exec_module(self, module):
        module.__spec__ = self._spec  # Python has just replaced it by the spec of the other name
        share_loaded()
