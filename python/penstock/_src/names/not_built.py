"""Names of Fluid 1.8 that are not built; their use raises an error that says so. A test checks that the lists are
exact.

    module.__getattr__ = getattr_of(module.__name__)    # of a public module
"""

from __future__ import annotations

import importlib
import sys
from typing import TYPE_CHECKING

from penstock._src.base.errors import suggestion

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any


LAYERS = "penstock.fluid.layers"


def list_of(module: str) -> str:
    """Returns the key in NAMES for a module such as 'penstock.fluid.layers.io'."""
    name = module.partition(".")[2]
    return "fluid.layers" if name.startswith("fluid.layers.") else name


def getattr_of(module: str, later: Sequence[str] = ()) -> Callable[[str], Any]:
    """Returns the __getattr__ of a public module, which Python calls for missing attributes.

    Fluid's scripts reach a layer through other modules than the one that defines it, because those import it, so every
    module of layers answers with every layer. `later` lists modules of the module that are imported when they are first
    asked for.
    """

    def missing(name: str) -> Any:
        if name in later:
            return importlib.import_module(f"{module}.{name}")
        if not name.startswith("__"):
            if module == "penstock.fluid.contrib.layers":
                return getattr(sys.modules[LAYERS], name)
            layers = vars(sys.modules[LAYERS]) if module.startswith(LAYERS + ".") else {}
            if name in layers:
                return layers[name]
        message = f"{module} has no {name}"
        if not name.startswith("_"):
            listed = NAMES.get(list_of(module), ())
            if name in listed:
                message = f"{module}.{name} is part of Fluid 1.8, but not built yet"
            else:
                there = [known for known in vars(sys.modules[module]) if not known.startswith("_")]
                there += [known for known in later if known not in there]
                message += suggestion(name, there + list(listed), most=3)
        raise AttributeError(message)

    return missing


def _names(lists: dict[str, str]) -> dict[str, frozenset[Any]]:
    return {module: frozenset(text.split()) for module, text in lists.items()}


# One name per line where many names are added at a time.
NAMES = _names(
    {
        "fluid": """
    """,
        "fluid.framework": """
    """,
    }
)
