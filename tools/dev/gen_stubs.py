#!/usr/bin/env python3
"""Writes type stubs into python/penstock: of the C++ module, of the table of settings, and of public modules with
functions that the source does not annotate, which are layers.

  .venv/bin/python tools/dev/gen_stubs.py            writes all stubs
  .venv/bin/python tools/dev/gen_stubs.py --check    exit code 1 if one is out of date

Arguments come from the signatures, and their types from the docstrings, as in `size (int | list[int]): ...`. A function
without a section Returns returns None. A type that cannot be derived is an error.
"""

import argparse
import enum
import functools
import importlib
import inspect
import pathlib
import pkgutil
import re
import sys

import native_stub

ROOT = pathlib.Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "python" / "penstock"
HEAD = """# Written by tools/dev/gen_stubs.py.
# mypy: disable-error-code="override"
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any

from numpy import dtype
from numpy.typing import NDArray
"""
# Words of docstrings -> types. Others are classes of this package.
TYPES = {
    "int": "int",
    "float": "float",
    "str": "str",
    "bool": "bool",
    "bytes": "bytes",
    "None": "None",
    "dict": "dict[Any, Any]",
    "list": "list[Any]",
    "tuple": "tuple[Any, ...]",
    "set": "set[Any]",
    "type": "type[Any]",
    "callable": "Callable[..., Any]",
    "function": "Callable[..., Any]",
    "object": "Any",  # any object of the user's
    "numpy.ndarray": "NDArray[Any]",
    "numpy.dtype": "dtype[Any]",
    "OutputWrapper": "tuple[Any, ...]",  # named tuples of the decoders
    "StateWrapper": "tuple[Any, ...]",
    "Iterable": "Iterable[Any]",
    "Iterator": "Iterator[Any]",
}
# An argument may be more than what a function returns.
TAKEN = {"list": "Sequence", "dict": "Mapping", "tuple": "Sequence"}
# The types in the table of settings -> types.
OF_SETTINGS = {"type": "type[PSDispatcher]", "dict": "dict[str, str]"}
SETTINGS = (
    ("field", "Fields", "", "The fields of DistributeTranspilerConfig."),
    ("argument", "Arguments", "TypedDict, total=False", "The settings that penstock.transpile takes."),
    ("rank_argument", "RankArguments", "TypedDict, total=False", "The settings that penstock.transpile_ranks takes."),
)
# Returns what functions of the user return.
OF_THE_USER = ("case", "cond", "switch_case", "py_func")
SPECIAL = ("__call__", "__iter__", "__len__", "__enter__", "__exit__", "__next__", "__getitem__", "__contains__")
GENERIC = re.compile(r"(list|Iterator|Iterable|set|tuple|dict)\[(.*)\]$")


def _is_annotated(thing):
    """Whether the source says the types of a function or class; those of C++ are in _penstock.pyi."""
    if inspect.isfunction(thing) and thing.__module__.startswith("penstock"):
        return "return" in getattr(inspect.unwrap(thing), "__annotations__", {})
    if inspect.isclass(thing) and thing.__module__.startswith("penstock.") and "_penstock" not in thing.__module__:
        members = [getattr(one, "__func__", getattr(one, "fget", one)) for one in vars(thing).values()]
        return all(_is_annotated(one) for one in members if inspect.isfunction(one))
    return True


def needs_stub(module):
    """Whether a public module has a function or a class without annotations."""
    return not all(_is_annotated(thing) for name, thing in vars(module).items() if not name.startswith("__"))


def public_modules():
    import penstock

    names = ["penstock"] + [found.name for found in pkgutil.walk_packages(penstock.__path__, "penstock.")]
    for name in sorted(names):
        if not any(part.startswith("_") for part in name.split(".")):
            yield name, importlib.import_module(name)


class Stub:
    """The stub of one module."""

    def __init__(self, name, module):
        self.name, self.module = name, module
        self.imports, self.lines = set(), []

    def text(self):
        for name in sorted({*vars(self.module), *getattr(self.module, "__all__", ())}):
            if name.startswith("_") and name != "__version__":
                continue
            self._declare(name, getattr(self.module, name))
        if hasattr(self.module, "__all__"):
            self.lines.append("__all__: list[str]")
        imports = "".join(f"from {module} import {name} as {alias}\n" for module, name, alias in sorted(self.imports))
        return HEAD + (imports and "\n" + imports) + "\n" + "\n".join(self.lines) + "\n"

    def _declare(self, name, thing):
        if inspect.ismodule(thing):
            if thing.__name__.startswith("penstock.") and thing.__name__.rpartition(".")[0] == self.name:
                self.imports.add((self.name, name, name))
            return
        home = getattr(thing, "__module__", None) if inspect.isclass(thing) or inspect.isfunction(thing) else None
        if home is not None and not home.startswith("penstock"):
            return
        public = home is not None and not any(part.startswith("_") for part in home.split("."))
        if public and home != self.name and getattr(sys.modules[home], thing.__name__, None) is thing:
            self.imports.add((home, thing.__name__, name))
        elif inspect.isclass(thing):
            self._class(name, thing)
        elif inspect.isfunction(thing):
            self.lines.append(self._function(name, thing, ""))
        elif isinstance(thing, (int, float, str, bool)):
            self.lines.append(f"{name}: {type(thing).__name__}")
        else:
            self.lines.append(f"{name}: Any")

    def _class(self, name, thing):
        if thing.__module__.startswith("penstock._penstock"):  # of C++: pybind11 says no types
            base = self._base(thing.__bases__[0]) if issubclass(thing, BaseException) else ""
            self.lines.append(
                f"class {name}{base and f'({base})'}:\n    def __init__(self, *args: Any, **kwargs: Any) -> None: "
                "...\n    def __getattr__(self, name: str) -> Any: ..."
            )
            return
        bases, members = self._bases_and_members(thing)
        documented = inspect.cleandoc(thing.__doc__ or "")
        body = []
        for member, value in sorted(members.items()):
            if member == "__init__" and inspect.isfunction(value):
                body.append(self._function(member, value, "    ", documented))
            elif not member.startswith("_") or member in SPECIAL:
                body.append(self._member(member, value))
        if not body:
            body.append("    def __getattr__(self, name: str) -> Any: ...")
        names = ", ".join(filter(None, map(self._base, bases)))
        self.lines.append("class {}{}:\n{}".format(name, names and f"({names})", "\n".join(body)))

    def _bases_and_members(self, thing):
        """A class's public bases, and its members including those of private bases."""
        bases, members = [], dict(vars(thing))
        for base in thing.__bases__:
            if base is object or self._can_name(base):
                bases.append(base)
                continue
            further, inherited = self._bases_and_members(base)
            bases += further
            for member, value in inherited.items():
                members.setdefault(member, value)
        return list(dict.fromkeys(bases)), members

    def _can_name(self, base):
        if base.__module__ in ("builtins", "enum") or getattr(self.module, base.__name__, None) is base:
            return not base.__name__.startswith("_")
        return base.__module__.startswith("penstock") and not any(
            part.startswith("_") for part in (base.__module__ + "." + base.__name__).split(".")
        )

    def _base(self, base):
        """The name of a base in this stub; '' for object."""
        if base is object:
            return ""
        if base.__module__ == "builtins":
            arguments = {dict: "[Any, Any]", list: "[Any]", set: "[Any]", tuple: "[Any, ...]"}
            return base.__name__ + arguments.get(base, "")
        if getattr(self.module, base.__name__, None) is not base or base.__module__ == "enum":
            self.imports.add((base.__module__, base.__name__, base.__name__))
        return base.__name__

    def _member(self, member, value):
        if isinstance(value, staticmethod):
            return "    @staticmethod\n" + self._function(member, value.__func__, "    ", skip_self=False)
        if isinstance(value, classmethod):
            return "    @classmethod\n" + self._function(member, value.__func__, "    ")
        if isinstance(value, property):
            text = f"    @property\n    def {member}(self) -> Any: ..."
            if value.fset is not None:
                text += f"\n    @{member}.setter\n    def {member}(self, value: Any) -> None: ..."
            return text
        if inspect.isfunction(value):
            return self._function(member, value, "    ")
        if inspect.isclass(value):
            return f"    {member}: type[Any]"
        if isinstance(value, enum.Enum):
            return f"    {member} = {value.value!r}"
        return f"    {member}: Any"

    def _function(self, name, function, indent, documentation=None, skip_self=True):
        text = inspect.cleandoc(function.__doc__ or "") if documentation is None else documentation
        types = dict(re.findall(r"(?m)^    (\w+) \(([^)]*)\):", text))
        parts = []
        parameters = list(inspect.signature(function).parameters.values())
        for i, parameter in enumerate(parameters):
            if i == 0 and indent and skip_self and parameter.kind == parameter.POSITIONAL_OR_KEYWORD:
                parts.append(parameter.name)
                continue
            kind = {parameter.VAR_POSITIONAL: "*", parameter.VAR_KEYWORD: "**"}.get(parameter.kind, "")
            if parameter.kind == parameter.KEYWORD_ONLY and "*" not in "".join(p for p in parts if p.startswith("*")):
                parts.append("*")
            declared = "Any" if kind else self._type(types.get(parameter.name, "object"), taken=True)
            optional = parameter.default is not parameter.empty
            if optional and parameter.default is None and declared != "Any" and "None" not in declared.split(" | "):
                declared += " | None"
            parts.append(f"{kind}{parameter.name}: {declared}{' = ...' if optional else ''}")
        result = "None" if name == "__init__" else self._result(name, text)
        return f"{indent}def {name}({', '.join(parts)}) -> {result}: ..."

    def _result(self, name, text):
        found = re.search(r"(?m)^(Returns|Yields):\n    ([^:\n]*)(: )?", text)
        if found is None:
            return "None"
        if found[1] == "Yields" or found[2].startswith("A context manager"):
            return "AbstractContextManager[Any]"
        return "Any" if name in OF_THE_USER else self._type(found[2])

    def _type(self, text, taken=False):
        """A docstring's type as a type for mypy."""
        made = []
        for word in self._split(text.replace(" or ", "|").replace("list of ", "list|"), "|"):
            found = GENERIC.match(word)
            if found:
                inner = [part if part == "..." else self._type(part, taken) for part in self._split(found[2], ",")]
                kind = TAKEN.get(found[1], found[1]) if taken else found[1]
                if kind == "Sequence":
                    inner = [" | ".join(dict.fromkeys(part for part in inner if part != "..."))]
                made.append(f"{kind}[{', '.join(inner)}]")
            elif taken and word in TAKEN:
                made.append(f"{TAKEN[word]}{'[Any, Any]' if word == 'dict' else '[Any]'}")
            elif word in TYPES:
                made.append(TYPES[word])
            else:
                made.append(self._our_class(word))
        return "Any" if "Any" in made else " | ".join(dict.fromkeys(made))

    def _our_class(self, word):
        """The name of a class of a public module, and imports it."""
        home = classes().get(word)
        if word not in vars(self.module) and home is None:
            UNKNOWN.append(f"{self.name}: {word}")
            return "Any"
        if word not in vars(self.module):
            self.imports.add((home, word, word))
        return word

    @staticmethod
    def _split(text, sign):
        """The parts of 'int | list[int | None]' outside of brackets."""
        parts, depth = [""], 0
        for character in text:
            depth += (character == "[") - (character == "]")
            if depth == 0 and character in (sign, ","):
                parts.append("")
            else:
                parts[-1] += character
        return [part.strip() for part in parts if part.strip()]


UNKNOWN = []  # types that cannot be derived


@functools.lru_cache
def classes():
    """{class: the public module that has it}."""
    found = {"Place": "penstock._src.ir.typing", "VarType": "penstock._src.ir.types"}
    for name, module in public_modules():
        for word, thing in vars(module).items():
            if inspect.isclass(thing) and thing.__module__ == name:
                found.setdefault(word, name)
    for word in ("LoDTensor", "LoDTensorArray", "ProgramDesc", "Scope", "SelectedRows"):
        found[word] = "penstock._penstock"
    return found


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
    for name, module in public_modules():
        source = pathlib.Path(module.__file__)
        path = PACKAGE.joinpath(*name.split(".")[1:])
        path = path / "__init__.pyi" if source.name == "__init__.py" else path.with_suffix(".pyi")
        if needs_stub(module):
            stubs[path] = Stub(name, module).text()
    if UNKNOWN:
        raise SystemExit("gen_stubs: types that cannot be derived: " + "; ".join(UNKNOWN))
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
