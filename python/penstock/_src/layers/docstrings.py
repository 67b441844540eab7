"""Completes the docstrings of layers.

A layer's source documents what is special about it. `completed` adds the rest when the layer is defined: arguments
that recur have one text each (SHARED); an argument of an op that the source does not document has the text of the op's
declaration; the types of arguments are those of the signature; the element types are those that the layer accepts.
"""

from __future__ import annotations

import inspect
import re
import textwrap
from collections.abc import Callable, Iterable, Mapping
from typing import Any

__all__: list[str] = []

# Arguments that recur: type and text.
SHARED = {
    "act": ("str | None", "name of an activation."),
    "align_corners": ("bool", "whether the corner pixels of the input and the result are aligned."),
    "axis": ("int", "the axis; negative: counted from the end."),
    "background_label": ("int", "the class that is ignored; -1: none."),
    "bias_attr": ("ParamAttr | bool | None", "attributes of the bias; False: no bias."),
    "candidate_activation": ("str", "activation of the candidate: one of the same names."),
    "class_num": ("int", "the number of classes."),
    "clip": ("bool", "whether boxes are clipped to the image."),
    "data_format": ("str", "'NCHW' or 'NHWC'."),
    "data_layout": ("str", "'NCHW' or 'NHWC'."),
    "device": ("str", "'cpu' or 'gpu'; has no effect, because the place of the executor decides."),
    "dtype": ("str | VarType", "type of the elements of the result."),
    "epsilon": ("float", "added to the variance."),
    "force_cpu": ("bool", "keep the tensor in host memory."),
    "gate_activation": ("str", "activation of the gates: 'sigmoid', 'tanh', 'relu' or 'identity'."),
    "groups": ("int | None", "number of groups into which the channels are split, each with its own filters; None: 1."),
    "im_info": ("Variable", "shape [N, 3]: height, width and scale of each image."),
    "is_reverse": ("bool", "run from the last row to the first."),
    "is_test": ("bool", "compute the result of inference; `Program.clone(for_test=True)` sets it."),
    "keep_dim": ("bool", "keep the reduced axes, with extent 1."),
    "keep_top_k": ("int", "the maximum number of boxes that are kept per image; -1: all."),
    "learning_rate": ("float | Variable", "rate in step 0; a Variable has shape [1], float32."),
    "name": ("str | None", "prefix of the names of the variables that the layer creates."),
    "nms_threshold": ("float", "the maximum overlap of two boxes that are kept."),
    "nms_top_k": ("int", "the maximum number of boxes that are considered per class; -1: all."),
    "normalized": (
        "bool",
        "False for boxes in pixels, whose width and height are the difference of their corners plus 1.",
    ),
    "num_classes": ("int", "the number of classes."),
    "num_filters": ("int", "number of channels of the result."),
    "offset": ("float", "position of the centre in its cell: 0 is the left or upper edge, 1 the right or lower edge."),
    "out": ("Variable | None", "receives the result, of its shape and type; by default a new Variable."),
    "param_attr": ("ParamAttr | None", "attributes of the weights."),
    "pool_type": ("str", "'max' or 'avg'."),
    "pooled_height": ("int", "the number of bins along the height."),
    "pooled_width": ("int", "the number of bins along the width."),
    "rois": ("Variable", "shape [regions, 4]: x1, y1, x2, y2, in a sequence for each image; same type as `input`."),
    "score_threshold": ("float", "only boxes whose score is above this are considered."),
    "seed": ("int", "seed of the random numbers; 0: different numbers in each run."),
    "shape": ("list[int | Variable] | Variable", "the shape; Variables are int32 or int64."),
    "spatial_scale": ("float", "factor that converts the coordinates of the regions to those of `input`."),
    "staircase": ("bool", "round step / decay_steps down."),
    "stop_gradient": ("bool", "whether gradients stop at the result."),
    "use_cudnn": ("bool", "has no effect on CPUs; kept for compatibility with Fluid."),
    "variance": ("list", "the 4 variances that are returned for each box."),
}
_HEADING = re.compile(r"([A-Z]\w+):$")
_ENTRY = re.compile(r"(\*{0,2}\w+)(?: \((.+?)\))?: ?(.*)$")
_WIDTH = 116  # of a docstring's line


def element_types_text(names: Iterable[str]) -> str:
    """Returns 'float32 or float64' for these names."""
    names = list(names)
    return " or ".join(filter(None, (", ".join(names[:-1]), names[-1])))


def completed(
    layer: Callable[..., Any],
    texts: Mapping[str, str],
    element_types: Mapping[str, str],
    checked: Iterable[str] = (),
    takes: str = "",
    like: Callable[..., Any] | None = None,
) -> str:
    """Returns the docstring of a layer.

    texts          of arguments that the source does not document, such as an op's attributes
    element_types  of arguments that are Variables: 'float32 or float64'
    checked        the arguments whose element types the layer checks
    takes          the first argument of a layer of one op, whose shape and type the result has and for which there is
                   an example, unless the source says otherwise; '' for other layers
    like           a layer whose texts apply where the source has none
    """
    text, sections = _sections(inspect.cleandoc(layer.__doc__ or ""))
    _, alike = _sections(inspect.cleandoc(like.__doc__ or "") if like else "")
    entries = {**_entries(alike.pop("Args", [])), **_entries(sections.pop("Args", []))}
    if like:
        entries = {
            name: entry for name, entry in entries.items() if name.lstrip("*") in inspect.signature(layer).parameters
        }
        sections = {**{name: alike[name] for name in ("Returns", "Raises") if name in alike}, **sections}
    arguments = _arguments(layer, entries, texts, element_types)
    if takes:
        sections.setdefault("Returns", [f"    Variable: same shape and type as `{takes}`."])
        sections.setdefault("Example", [f"    y = fluid.layers.{layer.__name__}(fluid.data('x', [None, 4]))"])
    parameters = inspect.signature(layer).parameters
    required = [
        name
        for name, (kind, _) in arguments.items()
        if kind == "Variable" and parameters[name].default is inspect.Parameter.empty
    ]
    raises = sections.setdefault("Raises", [])
    if required and not any(re.match(r"    [\w., ]*TypeError\b", line) for line in raises):
        raises[:0] = _wrapped(f"TypeError: {_not_accepted(required, checked)}.", 4)
    if arguments:
        sections["Args"] = [
            line for name, (kind, about) in arguments.items() for line in _wrapped(f"{name} ({kind}): {about}", 4)
        ]
    order = ["Args", "Returns", "Raises", "Example"]
    last = [name for name in sections if name not in order]
    parts = [text] + [f"{name}:\n" + "\n".join(sections[name]) for name in order + last if sections.get(name)]
    return "\n\n".join(parts) + "\n"


def _sections(docstring: str) -> tuple[str, dict[str, list[str]]]:
    """The text before the first section, and the lines of each section."""
    sections: dict[str, list[str]] = {}
    current = text = []
    for line in docstring.splitlines():
        heading = _HEADING.match(line)
        if heading:
            current = sections.setdefault(heading[1], [])
        else:
            current.append(line)
    for lines in (text, *sections.values()):
        while lines and not lines[-1].strip():
            lines.pop()
    return "\n".join(text), sections


def _entries(lines: list[str]) -> dict[str, tuple[str | None, str]]:
    """{argument: (its type if there is one, its text)} of a section Args."""
    entries: dict[str, tuple[str | None, str]] = {}
    for paragraph in re.split(r"\n(?=    \S)", "\n".join(lines)):
        found = _ENTRY.match(" ".join(paragraph.split()))
        if found:
            entries[found[1]] = (found[2], found[3])
    return entries


def _arguments(
    layer: Callable[..., Any],
    given: dict[str, tuple[str | None, str]],
    texts: Mapping[str, str],
    element_types: Mapping[str, str],
) -> dict[str, tuple[str, str]]:
    """{argument as it is documented: (its type, its text)}, in the order of the signature."""
    arguments = {}
    for name, parameter in inspect.signature(layer).parameters.items():
        label = {parameter.VAR_POSITIONAL: "*", parameter.VAR_KEYWORD: "**"}.get(parameter.kind, "") + name
        shared_kind, shared = SHARED.get(name, ("", ""))
        kind, text = given.pop(label, (None, ""))
        if not text and (shared or texts.get(name)):
            text = shared or texts[name]
        elif not text and name in ("x", "input"):
            shared_kind, text = "Variable", "any shape."
        if not kind:
            kind = shared_kind if parameter.annotation is parameter.empty else str(parameter.annotation)
        if not kind or not (text or name in element_types):
            raise TypeError(f"{layer.__name__}: its docstring lacks {name}")
        types = element_types.get(name, "")
        if " type as " in text or types in text:
            types = ""
        if types and "Variable" in kind and re.search(r"\b(?!Variable\b|None\b|list\b)\w+", kind):
            types = f"a Variable is {types}"
        arguments[label] = (kind, _with_types(text, types))
    if given:
        raise TypeError(f"{layer.__name__}: its docstring has {', '.join(given)}, which it does not take")
    return arguments


def _with_types(text: str, types: str) -> str:
    """The text, with element types at the end of its first sentence."""
    first, stop, rest = text.partition(". ")
    first = "; ".join(filter(None, (first.removesuffix("."), types)))
    return first + stop + rest if stop else f"{first}."


def _not_accepted(variables: list[str], checked: Iterable[str]) -> str:
    """'`x` or `y` is not a Variable, or has an unsupported element type'."""
    checked = set(checked)
    names = element_types_text(f"`{name}`" for name in variables)
    if not checked & set(variables):
        return f"{names} is not a Variable"
    if checked >= set(variables):
        return f"{names} is not a Variable, or has an unsupported element type"
    typed = element_types_text(f"`{name}`" for name in variables if name in checked)
    return f"{names} is not a Variable, or {typed} has an unsupported element type"


def _wrapped(text: str, indent: int) -> list[str]:
    return textwrap.wrap(
        text,
        _WIDTH,
        initial_indent=" " * indent,
        subsequent_indent=" " * (indent + 4),
        break_long_words=False,
        break_on_hyphens=False,
    )
