#!/usr/bin/env python3
"""Writes type stubs into python/penstock: of the C++ module, and of the table of settings.

  .venv/bin/python tools/dev/gen_stubs.py            writes both
  .venv/bin/python tools/dev/gen_stubs.py --check    exit code 1 if one is out of date

All other types are in the source. A public function or class without annotations is an error.
"""

import argparse
import importlib
import inspect
import pathlib
import pkgutil
import re
import sys

import native_stub

ROOT = pathlib.Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "python" / "penstock"
# The types in the table of settings -> types.
OF_SETTINGS = {"type": "type[PSDispatcher]", "dict": "dict[str, str]"}
SETTINGS = (
    ("field", "Fields", "", "The fields of DistributeTranspilerConfig."),
    ("argument", "Arguments", "TypedDict, total=False", "The settings that penstock.transpile takes."),
    ("rank_argument", "RankArguments", "TypedDict, total=False", "The settings that penstock.transpile_ranks takes."),
)


def _is_annotated(thing):
    """Whether the source says the types of a function or class; those of C++ are in _penstock.pyi."""
    if inspect.isfunction(thing) and thing.__module__.startswith("penstock"):
        return "return" in getattr(inspect.unwrap(thing), "__annotations__", {})
    if inspect.isclass(thing) and thing.__module__.startswith("penstock.") and "_penstock" not in thing.__module__:
        members = [getattr(one, "__func__", getattr(one, "fget", one)) for one in vars(thing).values()]
        return all(_is_annotated(one) for one in members if inspect.isfunction(one))
    return True


def without_annotations():
    """The functions and classes of public modules that lack annotations, as 'module.name'."""
    return [
        f"{module_name}.{name}"
        for module_name, module in public_modules()
        for name, thing in inspect.getmembers(module)
        if not name.startswith("__") and not _is_annotated(thing)
    ]


def public_modules():
    import penstock

    names = ["penstock"] + [found.name for found in pkgutil.walk_packages(penstock.__path__, "penstock.")]
    for name in sorted(names):
        if not any(part.startswith("_") for part in name.split(".")):
            yield name, importlib.import_module(name)


def settings_text():
    """The stub of a module for type checkers only: the names and types of all settings."""
    from penstock._src.transpile import config, settings

    lines = ["# Written by tools/dev/gen_stubs.py.", "from typing import TypedDict", ""]
    lines += ["from penstock._src.transpile.ps_dispatcher import PSDispatcher"]
    for face, name, bases, documentation in SETTINGS:
        lines += ["", f"class {name}{bases and f'({bases})'}:", f'    """{documentation}"""', ""]
        for setting, row in settings.rows_of(face).items():
            if face != "field" or not isinstance(getattr(config.DistributeTranspilerConfig, setting), property):
                named = settings.type_of(row, face)
                lines.append(f"    {setting}: " + re.sub(r"\w+", lambda word: OF_SETTINGS.get(word[0], word[0]), named))
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--check", action="store_true", help="write nothing; exit code 1 if a stub is out of date")
    check = parser.parse_args().check
    stubs = {
        PACKAGE / "_penstock.pyi": native_stub.text(),
        PACKAGE / "_src" / "transpile" / "setting_types.pyi": settings_text(),
    }
    if lacking := without_annotations():
        raise SystemExit("gen_stubs: these have no annotations: " + ", ".join(lacking))
    stale = []
    for path, text in stubs.items():
        if not path.exists() or path.read_text() != text:
            stale.append(path)
            if not check:
                path.write_text(text)
    for path in set(PACKAGE.rglob("*.pyi")) - set(stubs):
        stale.append(path)
        if not check:
            path.unlink()
    for path in sorted(stale):
        print(f"{'out of date:' if check else 'wrote'} {path.relative_to(ROOT)}")
    return 1 if check and stale else 0


if __name__ == "__main__":
    sys.exit(main())
