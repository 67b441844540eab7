#!/usr/bin/env python3
"""Lists the names of Fluid's API that Penstock lacks.

  tools/dev/fluid_names.py --api FILE       the public names in FILE, the corpus's api.json, that we lack, by module
  tools/dev/fluid_names.py --scripts DIR    how many scripts under DIR that use paddle.fluid find all their names,
                                            and the missing names, sorted by the number of scripts that use them

Run it with the Python in which Penstock is installed. The names of a script come from its syntax tree: its imports, and
attribute chains that start with an import. Scripts for the imperative mode, for Paddle 2 and for versions before Fluid
are not counted.
"""

import argparse
import ast
import collections
import importlib
import json
import pathlib
import sys
import types
import warnings

OTHER_KINDS = ("paddle.v2", "paddle.trainer", "paddle.trainer_config_helpers")
PADDLE_2 = set("nn static io optimizer vision metric tensor to_tensor DataParallel enable_static".split())


def chain_of(node):
    """('fluid', ['layers', 'fc']) for fluid.layers.fc; (None, []) for a chain that does not start with a name."""
    parts = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    return (node.id, parts[::-1]) if isinstance(node, ast.Name) else (None, [])


def imported(tree):
    """({local name: full name}, {full names}) of the imports of paddle."""
    known, names = {}, set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name.split(".")[0] == "paddle":
                    names.add(alias.name)
                    known[alias.asname or "paddle"] = alias.name if alias.asname else "paddle"
        elif isinstance(node, ast.ImportFrom) and not node.level and (node.module or "").split(".")[0] == "paddle":
            names.add(node.module)
            for alias in node.names:
                if alias.name != "*":
                    known[alias.asname or alias.name] = f"{node.module}.{alias.name}"
                    names.add(f"{node.module}.{alias.name}")
    return known, names


def names_used(text):
    """Full names, such as paddle.fluid.layers.fc, that a script uses."""
    tree = ast.parse(text)
    known, names = imported(tree)
    for node in ast.walk(tree):
        root, parts = chain_of(node) if isinstance(node, ast.Attribute) else (None, [])
        if root in known:
            names.add(".".join([known[root], *parts]))
    return names


def counts(names):
    """Whether Penstock should run a script with these names."""
    return (
        any((name + ".").startswith("paddle.fluid.") for name in names)
        and not any("dygraph" in name or name.startswith(OTHER_KINDS) for name in names)
        and not any(PADDLE_2.intersection(name.split(".")[1:2]) for name in names)
    )


def first_missing(name):
    """The shortest prefix of a full name that is missing; None if all of it exists. Ignores attributes of values."""
    parts = name.split(".")
    value = importlib.import_module(parts[0])
    for end, part in enumerate(parts[1:], 2):
        if not isinstance(value, (types.ModuleType, type)):
            return None
        try:
            value = getattr(value, part)
        except (AttributeError, ImportError, NotImplementedError):
            try:
                value = importlib.import_module(".".join(parts[:end]))
            except (ImportError, NotImplementedError):
                return ".".join(parts[:end])
    return None


def report_scripts(folder):
    missing, alone = collections.Counter(), collections.Counter()
    total = whole = 0
    for path in sorted(pathlib.Path(folder).rglob("*.py")):
        try:
            names = names_used(path.read_text())
        except (OSError, SyntaxError, ValueError):
            continue
        if not counts(names):
            continue
        lacks = {first_missing(name) for name in names} - {None}
        total, whole = total + 1, whole + (not lacks)
        missing.update(lacks)
        if len(lacks) == 1:
            alone.update(lacks)
    print(f"{whole} of {total} scripts find every name ({100 * whole / max(total, 1):.1f} %)")
    for name, count in missing.most_common():
        print(f"{count:5} scripts, {alone[name]:4} lack nothing else: {name}")


def report_api(path):
    for module, names in json.loads(pathlib.Path(path).read_text())["modules"].items():
        public = sorted(name for name, facts in names.items() if facts.get("in_all"))
        lacks = [name for name in public if first_missing(f"{module}.{name}")]
        if lacks:
            print(f"{module}: {len(lacks)} of {len(public)} public names are missing: {' '.join(lacks)}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--api", metavar="FILE")
    parser.add_argument("--scripts", metavar="DIR")
    options = parser.parse_args()
    if not options.api and not options.scripts:
        parser.error("give --api or --scripts")
    import penstock.compat

    penstock.compat.install()
    warnings.simplefilter("ignore")
    if options.api:
        report_api(options.api)
    if options.scripts:
        report_scripts(options.scripts)
    return 0


if __name__ == "__main__":
    sys.exit(main())
