"""Names of Fluid 1.8 that are not built; their use raises an error that says so. A test checks that the lists are
exact."""

from __future__ import annotations

from typing import Any


def list_of(module: str) -> str:
    """Returns the key in NAMES for a module such as 'penstock.fluid.layers.io'."""
    name = module.partition(".")[2]
    return "fluid.layers" if name.startswith("fluid.layers.") else name


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
