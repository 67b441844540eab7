"""Which public names the documentation has entries for."""

import importlib
import inspect
import pkgutil

# The first page that has an object documents it; later ones refer to it.
FIRST = [
    "penstock",
    "penstock.fluid.layers",
    "penstock.fluid.nets",
    "penstock.fluid.optimizer",
    "penstock.fluid.io",
    "penstock.fluid.framework",
    "penstock.fluid.executor",
    "penstock.fluid.transpiler",
    "penstock.hvd",
    "penstock.kv",
]


def public_modules():
    """(name, module) of each module that users import, by name; the most important ones first."""
    import penstock

    names = ["penstock"] + [found.name for found in pkgutil.walk_packages(penstock.__path__, "penstock.")]
    names = [name for name in names if not any(part.startswith("_") for part in name.split("."))]
    names.sort(key=lambda name: (FIRST.index(name) if name in FIRST else len(FIRST), name))
    for name in names:
        yield name, importlib.import_module(name)


def public_names(module):
    """What a module lists in `__all__`, or defines where it has no such list; of the launcher's parts nothing: its
    interface is the command."""
    if module.__name__.startswith("penstock.distributed.launch."):
        return []
    if hasattr(module, "__all__"):
        return sorted(module.__all__)
    return sorted(
        name
        for name, thing in vars(module).items()
        if not name.startswith("_") and getattr(thing, "__module__", None) == module.__name__
    )


def public_classes():
    """The ids of the classes that have an entry of their own."""
    things = (getattr(module, name, None) for _, module in public_modules() for name in public_names(module))
    return {id(thing) for thing in things if inspect.isclass(thing)}


def has_hidden_base(thing, public):
    """Whether a class inherits from a class of ours without an entry, so that its entry must have the members."""
    return any(
        base.__module__.startswith("penstock.") and not base.__name__.startswith("_") and id(base) not in public
        for base in thing.__mro__[1:]
        if base.__module__ != "penstock._penstock"
    )
