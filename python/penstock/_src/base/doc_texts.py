"""Completes docstrings from texts that several of them share, such as the description of an argument.

    _ARGUMENTS = {"loss": "loss (Variable): shape [1].", "no_grad_set": "no_grad_set (set | None): ..."}

    @with_texts(_ARGUMENTS, pass_name="backward")
    def backward(loss, no_grad_set=None):
        '''Adds the {pass_name} pass.

        Args:
            {loss}
        '''

A key that stands alone in a line is replaced by its text, whose lines get the indentation of that line; within a line,
a key is replaced if the decorator has a text for it. An argument that the docstring lacks, here no_grad_set, gets the
text of its name, if there is one. The docstring that `help`, the documentation and the generator of stubs see is the
whole text.

Layers have more sources of texts: see layers/docstrings.py.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

T = TypeVar("T")

_LINE = re.compile(r"^([ \t]*)\{(\w+)\}$", re.MULTILINE)
_ORDER = ("Args", "Returns", "Raises", "Example")
Sections = dict[str, list[str]]


def with_texts(*tables: Mapping[str, str], **texts: str) -> Callable[[T], T]:
    """Returns a decorator of functions and classes that completes their docstring.

    Args:
        tables: {key: text}. A text may contain keys of the tables and of `texts`, too.
        texts: further texts, or others in place of those of the tables.

    Raises:
        KeyError: (the decorator) a key that stands alone in a line has no text.
    """
    known = {key: text for table in (*tables, texts) for key, text in table.items()}

    def insert(thing: T) -> T:
        if thing.__doc__:  # none with python -OO
            thing.__doc__ = _with_arguments(thing, _filled(thing.__doc__, known), known)
        return thing

    return insert


def _filled(docstring: str, texts: Mapping[str, str]) -> str:
    def text_of_line(line: re.Match[str]) -> str:
        indentation, key = line.groups()
        lines = texts[key].splitlines()
        return _filled("\n".join(indentation + one if one else "" for one in lines), texts)

    docstring = _LINE.sub(text_of_line, docstring)
    return re.sub(r"\{(\w+)\}", lambda found: texts.get(found[1], found[0]), docstring)


def _with_arguments(thing: Any, docstring: str, texts: Mapping[str, str]) -> str:
    """The docstring with the texts of arguments that it lacks, in the order of the signature."""
    function = thing.__init__ if inspect.isclass(thing) else thing
    names = parameters(function) if inspect.isfunction(function) else {}
    if not any(name in texts and f" {name} (" not in docstring for name in names):
        return docstring
    text, sections = parsed(docstring)
    entries = entries_of(sections.get("Args", []))
    for name, label in names.items():
        if label not in entries and name in texts:
            entries[label] = "\n".join(f"    {line}" for line in _filled(texts[name], texts).splitlines())
    sections["Args"] = [entries[label] for label in names.values() if label in entries]
    return composed(text, sections)


def composed(text: str, sections: Sections) -> str:
    """Returns the docstring with this text and these sections, the usual ones first."""
    headings = sorted(sections, key=lambda name: _ORDER.index(name) if name in _ORDER else len(_ORDER))
    parts = [f"{name}:\n" + "\n".join(sections[name]) for name in headings if sections[name]]
    return "\n\n".join([text, *parts]) + "\n"


def parameters(function: Callable[..., Any]) -> dict[str, str]:
    """Returns {parameter: how it is documented, such as *args}, without those whose name begins with an underscore.

    It takes a tenth of the time of inspect.signature.
    """
    code = function.__code__
    count = code.co_argcount + code.co_kwonlyargcount
    names = {name: name for name in code.co_varnames[:count]}
    for flag, stars in ((inspect.CO_VARARGS, "*"), (inspect.CO_VARKEYWORDS, "**")):
        if code.co_flags & flag:
            name = code.co_varnames[len(names)]
            names[name] = stars + name
    return {name: label for name, label in names.items() if name[0] != "_"}


def parsed(docstring: str) -> tuple[str, Sections]:
    """Returns the text before the first section, and the lines of each section."""
    sections: Sections = {}
    current: list[str] = []
    text = current
    lines = docstring.split("\n")
    margin = min([len(line) - len(line.lstrip()) for line in lines[1:] if line and not line.isspace()], default=0)
    for line in [lines[0], *[line[margin:] for line in lines[1:]]]:
        if line[-1:] == ":" and line[0] != " " and line[:-1].isalpha():
            current = sections.setdefault(line[:-1], [])
        else:
            current.append(line)
    for part in (text, *sections.values()):
        while part and not part[-1].strip():
            part.pop()
    return "\n".join(text), sections


def entries_of(lines: list[str]) -> dict[str, str]:
    """Returns {argument: its lines} of a section Args."""
    entries: dict[str, str] = {}
    name = ""
    for line in lines:
        if line[4:5] == " ":
            entries[name] += "\n" + line
        elif line.strip():
            name = line.partition(":")[0].strip().partition(" ")[0]
            entries[name] = line
    return entries
