"""Completes the docstrings of layers.

A layer's source documents what is special about it. `completed` adds the rest when the layer is defined: arguments
that recur have one text each (argument_texts.LAYER); an argument of an op that the source does not document has the
text of the op's declaration; the types of arguments are those of the signature; the element types are those that the
layer accepts.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any

from penstock._src.base.argument_texts import LAYER
from penstock._src.base.doc_texts import composed, entries_of, parameters, parsed

_ENTRY = re.compile(r"(\*{0,2}\w+)(?: \((.+?)\))?: ?(.*)$", re.DOTALL)
_OTHER_THAN_VARIABLE = re.compile(r"\b(?!Variable\b|None\b|list\b)\w+")
_WIDTH = 116  # of a docstring's line


def element_types_text(names: Iterable[str]) -> str:
    """Returns 'float32 or float64' for these names."""
    names = list(names)
    return " or ".join(filter(None, (", ".join(names[:-1]), names[-1])))


def completed(
    layer: Callable[..., Any],
    about: Callable[[str], str],
    element_types: Mapping[str, str],
    checked: Collection[str] = (),
    takes: str = "",
    like: Callable[..., Any] | None = None,
) -> str:
    """Returns the docstring of a layer.

    about          the text of an argument that the source does not document, such as an op's attribute
    element_types  of arguments that are Variables: 'float32 or float64'
    checked        the arguments whose element types the layer checks
    takes          the first argument of a layer of one op, whose shape and type the result has and for which there is
                   an example, unless the source says otherwise; '' for other layers
    like           a layer whose texts apply where the source has none
    """
    if sys.flags.optimize > 1:  # python -OO drops docstrings
        return ""
    text, sections = parsed(layer.__doc__ or "")
    entries = entries_of(sections.pop("Args", []))
    if like:
        _, alike = parsed(like.__doc__ or "")
        entries = {**entries_of(alike["Args"]), **entries}
        sections = {**{name: alike[name] for name in ("Returns", "Raises") if name in alike}, **sections}
    arguments = _arguments(layer, entries, about, element_types, strict=like is None)
    if takes:
        sections.setdefault("Returns", [f"    Variable: same shape and type as `{takes}`."])
        errors = sections.setdefault("Raises", [])
        if not any("ProgramError" in line for line in errors):
            errors.append("    penstock.ProgramError: the op refuses the shapes, types or attributes.")
        sections.setdefault("Example", [f"    y = fluid.layers.{layer.__name__}(fluid.data('x', [None, 4]))"])
    code = layer.__code__
    free = code.co_varnames[: code.co_argcount - len(layer.__defaults__ or ())]
    required = [name for name in free if arguments[name].startswith(f"    {name} (Variable):")]
    raises = sections.setdefault("Raises", [])
    if required and not any("TypeError" in line.partition(":")[0] for line in raises):
        raises.insert(0, _wrapped(f"    TypeError: {_not_accepted(required, checked)}."))
    sections["Args"] = list(arguments.values())
    return composed(text, sections)


def _arguments(
    layer: Callable[..., Any],
    entries: dict[str, str],
    about: Callable[[str], str],
    element_types: Mapping[str, str],
    strict: bool,
) -> dict[str, str]:
    """{argument: its documentation}, in the order of the signature."""
    annotations = layer.__annotations__
    arguments = {}
    for name, label in parameters(layer).items():
        types = element_types.get(name, "")
        kind, text = annotations.get(name), ""
        entry = entries.pop(label, "")
        if entry:
            found = _ENTRY.match(entry, 4)
            if found is None:
                raise TypeError(f"{layer.__name__}: the docstring of {name} is not 'name: text' but {entry!r}")
            if found[2] and (not types or types in entry or " type as " in entry):
                arguments[name] = entry  # as it stands
                continue
            kind, text = found[2] or kind, " ".join(found[3].split())
        if not text:
            shared = _ENTRY.match(LAYER.get(name, ""))
            shared_kind, text = shared.group(2, 3) if shared else ("Variable", about(name))
            if not text and name in ("x", "input"):
                text = "any shape."
            kind = kind or shared_kind
        if not kind or not text and not types:
            raise TypeError(f"{layer.__name__}: its docstring lacks {name}")
        if types and types not in text and " type as " not in text:
            mixed = "Variable" in kind and _OTHER_THAN_VARIABLE.search(kind)
            text = _with_types(text, f"a Variable is {types}" if mixed else types)
        arguments[name] = _wrapped(f"    {label} ({kind}): {text}")
    if entries and strict:
        raise TypeError(f"{layer.__name__}: its docstring has {', '.join(entries)}, which it does not take")
    return arguments


def _with_types(text: str, types: str) -> str:
    """The text, with element types at the end of its first sentence."""
    first, stop, rest = text.partition(". ")
    first = "; ".join(filter(None, (first.removesuffix("."), types)))
    return first + stop + rest if stop else f"{first}."


def _not_accepted(variables: list[str], checked: Collection[str]) -> str:
    """'`x` or `y` is not a Variable, or has an unsupported element type'."""
    names = element_types_text(f"`{name}`" for name in variables)
    typed = [name for name in variables if name in checked]
    if not typed:
        return f"{names} is not a Variable"
    if len(typed) == len(variables):
        return f"{names} is not a Variable, or has an unsupported element type"
    some = element_types_text(f"`{name}`" for name in typed)
    return f"{names} is not a Variable, or {some} has an unsupported element type"


def _wrapped(text: str) -> str:
    """The text, which begins with 4 spaces, in lines of at most _WIDTH; textwrap takes five times as long."""
    if len(text) <= _WIDTH:
        return text
    first, *words = text[4:].split(" ")
    lines, line = [], f"    {first}"
    for word in words:
        if len(line) + 1 + len(word) <= _WIDTH:
            line += f" {word}"
        else:
            lines.append(line)
            line = f"        {word}"
    return "\n".join([*lines, line])
