"""The table of public names, public.tsv: which module of the implementation has a name of a public module."""

from __future__ import annotations

import functools
import os
from collections.abc import Mapping
from typing import NamedTuple


class Source(NamedTuple):
    """What a name of a public module is; modules are without 'penstock.'."""

    module: str
    name: str
    is_module: bool  # `name` is a public module in the package `module`


_NONE: Mapping[str, Source] = {}
_NO_NAMES: Mapping[str, str] = {}


def names_of(module: str) -> Mapping[str, Source]:
    """Returns {name: its source} of a public module such as 'penstock.fluid.layers'."""
    return _table()[0].get(module.partition(".")[2] or module, _NONE)


def owned_names(source: str) -> Mapping[str, str]:
    """Returns {name: the public module whose path users see}, for the names of a module of the implementation."""
    return _table()[1].get(source, _NO_NAMES)


@functools.cache
def _table() -> tuple[dict[str, dict[str, Source]], dict[str, dict[str, str]]]:
    names: dict[str, dict[str, Source]] = {}
    owned: dict[str, dict[str, str]] = {}
    with open(os.path.join(os.path.dirname(__file__), "public.tsv"), encoding="utf-8") as file:
        rows = [line.rstrip("\n").split("\t") for line in file]
    modules = {row[0] for row in rows}
    for public, name, source, words in rows:
        of_module = names.setdefault(public, {})
        if name:
            module, _, there = source.partition(":")
            there = there or name
            of_module[name] = Source(module, there, f"{module}.{there}" in modules)
            if "elsewhere" not in words and module.startswith("_src"):
                owned.setdefault(module, {})[there] = f"penstock.{public}" if public != "penstock" else public
    return names, owned
