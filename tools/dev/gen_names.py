#!/usr/bin/env python3
"""Writes the public modules of penstock.fluid, penstock.hvd and penstock.kv: lists of names of the implementation.

  .venv/bin/python tools/dev/gen_names.py            writes all modules
  .venv/bin/python tools/dev/gen_names.py --check    exit code 1 if one is out of date, or is not in the table

The table is python/penstock/_src/names/public.tsv, a name a line: the public module, the name, the module that has it,
and words: `all`: __all__ lists it; `elsewhere`: users see it as a name of another public module. A module without names
has a line without a name. A module's docstring is its own: the generator keeps it. The written modules import their
names for type checkers only: facade.make loads a name when a script first uses it. A package that has all names of
__all__ of one of its modules, which are many, imports them by *, as Fluid's packages do.
"""

import argparse
import ast
import collections
import csv
import pathlib
import sys
import textwrap

ROOT = pathlib.Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "python" / "penstock"
TABLE = PACKAGE / "_src" / "names" / "public.tsv"
PUBLIC = ("fluid", "hvd", "kv", "torch", "work")  # the packages that are written
WIDTH = 118
INDENT = "    "  # of the imports
MANY = 8  # names

Row = collections.namedtuple("Row", "module name source words")


def read_table():
    """Returns {public module: [Row]}, in the order of the table."""
    modules = {}
    with open(TABLE, newline="", encoding="utf-8") as file:
        for line in csv.reader(file, delimiter="\t", quoting=csv.QUOTE_NONE):
            row = Row(*line[:3], line[3].split())
            modules.setdefault(row.module, []).extend([row] if row.name else [])
    return modules


def path_of(module, modules):
    """Returns the file of a public module such as 'fluid.layers.nn'."""
    path = PACKAGE.joinpath(*module.split("."))
    packed = any(other.startswith(module + ".") for other in modules)
    return path / "__init__.py" if packed else path.with_suffix(".py")


def _order(name):
    """Constants, then classes, then functions."""
    bare = name.lstrip("_")
    return (0 if bare.isupper() and len(bare) > 1 else 1 if bare[:1].isupper() else 2, name.lower(), name)


def _listed(head, parts, brackets):
    """Returns head, and the parts in brackets: in one line, or below it in several."""
    end = "," if len(parts) == 1 and brackets == "()" and head.endswith("=") else ""
    line = head + brackets[0] + ", ".join(parts) + end + brackets[1]
    if len(line) <= WIDTH:
        return line
    body = textwrap.wrap(
        ", ".join(part.replace(" ", "\0") for part in parts) + ",",
        WIDTH,
        initial_indent="    ",
        subsequent_indent="    ",
        break_long_words=False,
        break_on_hyphens=False,
    )
    return "\n".join([head + brackets[0], *body, brackets[1]]).replace("\0", " ")


def _import(source, rows):
    """Returns the statements, of one line each where names are short, that import rows of one source."""
    names = []
    for row in sorted(rows, key=lambda row: _order(row.name)):
        there = row.source.partition(":")[2] or row.name
        exported = "all" in row.words and there == row.name  # others are exported to type checkers by `as`
        names.append(there if exported else f"{there} as {row.name}")
    head = f"from penstock.{source} import " if source else "from penstock import "
    width = WIDTH - len(INDENT) - len(head)
    lines = textwrap.wrap(", ".join(one.replace(" ", "\0") for one in names), width, break_long_words=False)
    lines = [line.replace("\0", " ").rstrip(",") for line in lines]
    return "\n".join(INDENT + head + (line if len(line) <= width else f"(\n        {line},\n    )") for line in lines)


def _whole_modules(module, modules):
    """Returns {module of the package `module`: the names that the package imports from it by *}."""
    own = {(row.name, row.source) for row in modules[module]}
    found = {}
    for name in sorted(modules):
        listed = {(row.name, row.source) for row in modules[name] if "all" in row.words}
        if name.rpartition(".")[0] == module and len(listed) >= MANY and listed <= own:
            found[name] = {known for known, _ in listed}
    return found


def text_of(module, modules, docstring):
    """Returns the source of a public module."""
    rows, whole = modules[module], _whole_modules(module, modules)
    by_star = set().union(*whole.values())
    sources = collections.defaultdict(list)
    for row in rows:
        if row.name not in by_star and row.name != "__getattr__":  # a type checker would accept any name
            sources[row.source.partition(":")[0]].append(row)
    imports = [_import(source, found) for source, found in sorted(sources.items())]
    imports += [f"{INDENT}from penstock.{name} import *" for name in whole]
    listed = sorted(row.name for row in rows if "all" in row.words)
    head = ["from penstock._src.names import facade"]
    head += ["\nif facade.TYPE_CHECKING:", *imports] if imports else []
    parts = [
        '"""{}"""\n\n# Written by tools/dev/gen_names.py.\n{}\n'.format(docstring, "\n".join(head)),
        _listed("__all__ = ", [repr(name) for name in listed], "[]") + "\n",
        "facade.make(__name__)\n",
    ]
    return "\n".join(parts)


def docstring_of(path):
    """Returns the docstring of a file as it is written there."""
    source = path.read_text(encoding="utf-8")
    node = ast.parse(source).body[0]
    text = ast.get_source_segment(source, node)
    if not (text.startswith('"""') and text.endswith('"""')):
        raise SystemExit(f"{path}: begin the module with a docstring in three double quotes")
    return text[3:-3]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--check", action="store_true", help="write nothing; exit code 1 if a module is out of date")
    check = parser.parse_args().check
    modules, wrong, wanted = read_table(), [], set()
    for module in modules:
        if module.split(".")[0] not in PUBLIC:
            continue
        path = path_of(module, modules)
        wanted.add(path)
        if not path.exists():
            raise SystemExit(f"{path.relative_to(ROOT)}: write its docstring first")
        text = text_of(module, modules, docstring_of(path))
        if path.read_text(encoding="utf-8") != text:
            wrong.append(path)
            if not check:
                path.write_text(text, encoding="utf-8")
    strange = sorted(path for public in PUBLIC for path in set((PACKAGE / public).rglob("*.py")) - wanted)
    for path in wrong:
        print(f"{'out of date:' if check else 'wrote'} {path.relative_to(ROOT)}")
    for path in strange:
        print(f"not in the table: {path.relative_to(ROOT)}")
    return 1 if strange or (check and wrong) else 0


if __name__ == "__main__":
    sys.exit(main())
