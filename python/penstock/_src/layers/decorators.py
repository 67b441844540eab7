"""The two decorators that make layers.

`op_layer` makes a layer of one op. The signature is that of the layer, and the decorator says what the signature does
not: the op, and arguments whose names differ from those of the op's slots and attributes.

    @op_layer("softshrink", typed="x", attrs={"lambda": "alpha"})
    def softshrink(x: Variable, alpha: float | None = None) -> Attrs:
        \"\"\"Moves each element towards zero by alpha; elements in [-alpha, alpha] become zero.\"\"\"

The function may check its arguments, and returns the op's attributes if they are not simply its arguments.

`layer` is for functions that add their ops themselves. Both complete the docstring (docstrings.py), and check element
types with an error that names the argument, where Fluid's layer does so:

    typed          arguments whose element type must be one that the op takes, as the registry in C++ declares it
    fluid_accepts  Fluid accepts less: the element types of an argument, or of several, some of those that the op takes

An element type that neither excludes is left to the op, which refuses it as in any program.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Optional, TypeVar, cast

from penstock import _penstock
from penstock._src.base.doc_texts import parameters
from penstock._src.ir.argument_types import kernel_types, require_types, types_of
from penstock._src.ir.types import VarType, dtype_name
from penstock._src.ir.variable import Variable
from penstock._src.layers.docstrings import completed, element_types_text
from penstock._src.layers.helper import LayerHelper, require_variables

if TYPE_CHECKING:
    from typing_extensions import ParamSpec

    P = ParamSpec("P")


F = TypeVar("F", bound=Callable[..., Any])
Attrs = Optional[dict[str, Any]]
Types = dict[str, "frozenset[VarType]"]
_ORDER = ("bool", "uint8", "int8", "int16", "int32", "int64", "float16", "float32", "float64")


def layer(
    op: str = "",
    typed: str = "",
    fluid_accepts: Mapping[str, str] | None = None,
    *,
    like: Callable[..., Any] | None = None,
) -> Callable[[F], F]:
    """Decorates a function that adds ops.

    op    the op that takes the arguments of `typed`
    like  a layer that documents arguments, result and errors which the function does not document itself
    """
    types = _accepted(op, typed, fluid_accepts or {})

    def decorate(function: F) -> F:
        function.__doc__ = completed(function, lambda name: "", _texts(types), types, like=like)
        function.checked_types = (op, types)  # type: ignore[attr-defined]
        return _with_checks(function, types) if types else function

    return decorate


def op_layer(
    op: str,
    typed: str = "",
    fluid_accepts: Mapping[str, str] | None = None,
    *,
    inputs: Mapping[str, str] | None = None,
    attrs: Mapping[str, str] | None = None,
    output: str = "Out",
    outputs: str = "",
    receives: str = "out",
    prefix: str = "",
    named: bool = False,
    stop_gradient: bool | str = False,
    returned_if: str = "",
    like: Callable[..., Any] | None = None,
) -> Callable[[Callable[P, Attrs]], Callable[P, Variable]]:
    """Decorates a function that declares a layer of one op.

    inputs         {slot: argument} where the argument is not the slot's name in snake case. An argument that is also an
                   attribute goes to the slot if it is a Variable.
    attrs          {attribute: argument} where the names differ
    output         the slot of the result
    outputs        all outputs in the order in which Fluid names them; by default the result, then the intermediate ones
    receives       the argument that may receive the result
    prefix         of the names of the layer's variables; by default the name of the layer
    named          the result has exactly the name that is given
    stop_gradient  whether gradients stop at the results, or the slots of the outputs where they stop
    returned_if    the argument that says whether the last of several results is returned
    like           as in `layer`
    """
    types = _accepted(op, typed, fluid_accepts or {})

    def decorate(function: Callable[P, Attrs]) -> Callable[P, Variable]:
        made = _OpLayer(function, op, inputs or {}, attrs or {})
        made.result, made.receives, made.named = output, receives, named
        made.outputs = outputs.split() or [output, *made.intermediate]
        made.prefix, made.returned_if = prefix or function.__name__, returned_if
        made.stop_gradient = stop_gradient
        made.narrowed = {name for names in fluid_accepts or {} for name in names.split()}
        function.__doc__ = completed(function, made.about, made.element_types(types), types, made.first, like)

        function.__annotations__["return"] = "Variable"  # of the layer, for help and inspect.signature

        @functools.wraps(function)
        def layer(*args: P.args, **kwargs: P.kwargs) -> Variable:
            values = made.checked(types, args, kwargs)
            result: Variable = made.append(values, function(*args, **kwargs))
            return result

        layer.checked_types, layer.of_op = (op, types), made  # type: ignore[attr-defined]
        return layer

    return decorate


def op_layer_with_results(
    op: str, results: str, **options: Any
) -> Callable[[Callable[P, Attrs]], Callable[P, tuple[Variable, ...]]]:
    """Decorates a function that declares a layer of one op which returns several results.

    results  the slots of the results, in the order in which the layer returns them
    options  of `op_layer`
    """

    def decorate(function: Callable[P, Attrs]) -> Callable[P, tuple[Variable, ...]]:
        first, *_ = slots = results.split()
        made = op_layer(op, output=first, **{"outputs": results, **options})(function)
        made.of_op.results = slots  # type: ignore[attr-defined]
        function.__annotations__["return"] = made.__annotations__["return"] = "tuple[Variable, ...]"
        return cast("Callable[P, tuple[Variable, ...]]", made)

    return decorate


class _OpLayer:
    """How the arguments of a layer become an op."""

    outputs: list[str]
    result: str
    results: Sequence[str] = ()
    receives: str
    prefix: str
    named: bool
    stop_gradient: bool | str  # at the results, or at the outputs of these slots
    returned_if: str  # the argument that says whether the last result is returned
    inputs: dict[str, str]  # {slot: argument}
    attrs: dict[str, str]  # {attribute: argument}
    narrowed: set[str]  # the arguments of which Fluid accepts fewer element types

    def __init__(
        self, function: Callable[..., Attrs], op: str, inputs: Mapping[str, str], attrs: Mapping[str, str]
    ) -> None:
        _, slots, outputs, declared = _penstock.op_facts(op)
        names = parameters(function)
        self.name, self.op, self.places = function.__name__, op, tuple(names)
        given = function.__defaults__ or ()
        self.defaults = dict(zip(self.places[len(self.places) - len(given) :], given))
        numbers = {attr for attr, *_ in declared} - {*inputs.values()}  # arguments that are attributes by their names
        self.inputs = {}
        for slot, *_ in slots:
            name = inputs.get(slot) or _argument(slot, names)
            if name in names and (slot in inputs or name not in numbers):
                self.inputs[slot] = name
        self.attrs = {}
        for attr, *_ in declared:
            name = attrs.get(attr, attr)
            if name in names and (name in inputs.values() or name not in self.inputs.values()):
                self.attrs[attr] = name
        self.either = {*self.attrs.values()} & {*self.inputs.values()}  # a Variable is an input, a number an attribute
        self.first = next(iter(self.inputs.values()), "")
        self.intermediate = [slot for slot, _, _, intermediate, _ in outputs if intermediate]

    def about(self, name: str) -> str:
        """What the op's declaration says about an argument, with arguments in place of slots."""
        _, slots, _, declared = _penstock.op_facts(self.op)
        of = {arg: part for part, arg in [*self.attrs.items(), *self.inputs.items()]}
        text = str(next((about for part, *_, about in [*slots, *declared] if part == of.get(name)), ""))
        for slot, arg in self.inputs.items():
            if slot in text:
                text = re.sub(rf"\b{slot}\b(?= |$|[,;.])", f"`{arg}`", text)
        return f"{text}." if text else ""

    def element_types(self, types: Types) -> dict[str, str]:
        """The texts of the arguments' element types: those that the layer checks, and those of the op."""
        return {**({self.first: _text(kernel_types(self.op))} if self.first else {}), **_texts(types)}

    def checked(self, types: Types, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
        """The arguments by name. Raises TypeError if an input is not a Variable or has another element type."""
        values = {**self.defaults, **dict(zip(self.places, args)), **kwargs}
        for name, allowed in types.items():
            if values.get(name) is not None:
                require_types(self.name, name, values[name], allowed)
        for name in self.inputs.values():
            optional = name in self.either or name in self.defaults and values[name] is None
            if name in values and not optional:
                require_variables(self.prefix, **{name: values[name]})
        return values

    def append(self, values: dict[str, Any], changed: Attrs) -> Any:
        """Appends the op and returns its result, or a tuple of its results if it has several."""
        helper = LayerHelper(self.prefix, name=values.get("name"), act=values.get("act"))
        inputs = {slot: values[name] for slot, name in self.inputs.items() if values[name] is not None}
        attrs = {attr: values[name] for attr, name in self.attrs.items()}
        for name in self.either:
            unused = attrs if isinstance(values[name], Variable) else inputs
            for key in [key for key, value in unused.items() if value is values[name]]:
                del unused[key]
        attrs.update(changed or {})
        first = next(iter(inputs.values()))
        outputs = {slot: self._output(helper, slot, values, first) for slot in self.outputs}
        helper.append_op(self.op, inputs, outputs, {key: value for key, value in attrs.items() if value is not None})
        if self.results:
            made = [outputs[slot] for slot in self.results]
            if self.returned_if and not values[self.returned_if]:
                made.pop()
            return tuple(made) if len(made) > 1 else made[0]
        return helper.append_activation(outputs[self.result])

    def _output(self, helper: LayerHelper, slot: str, values: dict[str, Any], first: Variable) -> Variable:
        stops = self._stops_at(slot)
        if slot != self.result:
            return helper.create_variable_for_type_inference(first.dtype, stops)
        if values.get(self.receives) is not None:
            return cast(Variable, values[self.receives])
        if self.named and values["name"] is not None:
            return helper.create_variable(name=values["name"], dtype=first.dtype, type=first.type)
        return helper.create_variable_for_type_inference(first.dtype, stops)

    def _stops_at(self, slot: str) -> bool:
        """Whether gradients stop at an output."""
        if isinstance(self.stop_gradient, str):
            return slot in self.stop_gradient.split()
        return self.stop_gradient and slot in (self.result, *self.results)


def _argument(slot: str, names: Mapping[str, str]) -> str:
    """The argument of a slot by its name: PriorBox -> prior_box, ROIs -> rois."""
    snake = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", slot).lower()
    return snake if snake in names else slot.lower()


def _accepted(op: str, typed: str, fluid_accepts: Mapping[str, str]) -> Types:
    """The element types of the arguments whose types the layer checks."""
    types = {name: kernel_types(op) for name in typed.split()}
    for names, text in fluid_accepts.items():
        types.update(dict.fromkeys(names.split(), types_of(text)))
    return types


def _texts(types: Types) -> dict[str, str]:
    return {name: _text(allowed) for name, allowed in types.items()}


@functools.cache
def _text(types: frozenset[VarType]) -> str:
    """'float32 or float64'; '' for all types."""
    names = {dtype_name(one) for one in types}
    return element_types_text(name for name in _ORDER if name in names) if names < {*_ORDER} else ""


def _with_checks(function: F, types: Types) -> F:
    """The function, which first raises TypeError if an argument has an element type that is not in `types`."""
    places = list(parameters(function))
    checks = [(places.index(name), name, allowed) for name, allowed in types.items()]

    @functools.wraps(function)
    def checked(*args: Any, **kwargs: Any) -> Any:
        for place, name, allowed in checks:
            given = args[place] if place < len(args) else kwargs.get(name)
            if given is not None:
                require_types(function.__name__, name, given, allowed)
        return function(*args, **kwargs)

    return cast(F, checked)
