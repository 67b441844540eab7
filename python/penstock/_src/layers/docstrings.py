"""Completes the docstrings of layers.

A layer's source documents what is special about it. `completed` adds the rest when the layer is defined: arguments
that recur have one text each (SHARED); an argument of an op that the source does not document has the text of the op's
declaration; the types of arguments are those of the signature; the element types are those that the layer accepts.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Collection, Iterable, Mapping
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
_ENTRY = re.compile(r"(\*{0,2}\w+)(?: \((.+?)\))?: ?(.*)$", re.DOTALL)
_OTHER_THAN_VARIABLE = re.compile(r"\b(?!Variable\b|None\b|list\b)\w+")
_WIDTH = 116  # of a docstring's line
Sections = dict[str, list[str]]


def parameters(function: Callable[..., Any]) -> dict[str, str]:
    """Returns {parameter: how it is documented, such as *args}. It takes a tenth of the time of inspect.signature."""
    code = function.__code__
    count = code.co_argcount + code.co_kwonlyargcount
    names = {name: name for name in code.co_varnames[:count]}
    for flag, stars in ((inspect.CO_VARARGS, "*"), (inspect.CO_VARKEYWORDS, "**")):
        if code.co_flags & flag:
            name = code.co_varnames[len(names)]
            names[name] = stars + name
    return names


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
    text, sections = _sections(layer.__doc__ or "")
    entries = _entries(sections.pop("Args", []))
    if like:
        _, alike = _sections(like.__doc__ or "")
        entries = {**_entries(alike["Args"]), **entries}
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
    order = ["Args", "Returns", "Raises", "Example"]
    parts = [f"{name}:\n" + "\n".join(sections.pop(name)) for name in order if sections.get(name)]
    parts += [f"{name}:\n" + "\n".join(lines) for name, lines in sections.items() if lines]
    return "\n\n".join([text, *parts]) + "\n"


def _sections(docstring: str) -> tuple[str, Sections]:
    """The text before the first section, and the lines of each section."""
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


def _entries(lines: list[str]) -> dict[str, str]:
    """{argument: its lines} of a section Args."""
    entries: dict[str, str] = {}
    name = ""
    for line in lines:
        if line[4:5] == " ":
            entries[name] += "\n" + line
        elif line.strip():
            name = line.partition(":")[0].strip().partition(" ")[0]
            entries[name] = line
    return entries


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
            shared_kind, text = SHARED.get(name) or ("Variable", about(name))
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
