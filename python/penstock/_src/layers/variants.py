"""Layers that differ only in their op, in some words, or in the number of spatial axes: variants of one function.

    @op_layers(typed="x y")
    def _logical(x: Variable, y: Variable, out: Variable | None = None, name: str | None = None) -> Attrs:
        \"\"\"Computes {formula}, element by element.\"\"\"

    logical_and = _logical("logical_and", formula="x and y")

The docstring is a template. A keyword of a variant replaces the default of an argument, or is a word of the docstring.
An argument that begins with an underscore tells the body which variant it is; it is no argument of the layer.
"""

from __future__ import annotations

import inspect
import types
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast

from penstock._src.layers.decorators import Attrs, op_layer

if TYPE_CHECKING:
    from typing import Protocol

    from typing_extensions import ParamSpec

    from penstock._src.ir.variable import Variable

    P = ParamSpec("P")
    Layer = Callable[P, Variable]

    class Variants(Protocol[P]):
        def __call__(self, name: str, **words: Any) -> Layer[P]: ...

    class OpVariants(Protocol[P]):
        def __call__(
            self,
            name: str,
            op: str = ...,
            fluid_accepts: Mapping[str, str] | None = ...,
            prefix: str = ...,
            **words: Any,
        ) -> Layer[P]: ...


T = TypeVar("T")


def variants(template: Layer[P]) -> Variants[P]:
    """Decorates the function whose variants `layer` completes."""

    def variant(name: str, **words: Any) -> Layer[P]:
        return _variant(template, name, words)

    return variant


def op_layers(
    op: str = "", typed: str = "", fluid_accepts: Mapping[str, str] | None = None, **options: Any
) -> Callable[[Callable[P, Attrs]], OpVariants[P]]:
    """Decorates the function whose variants are layers of one op each.

    op, fluid_accepts  for variants that name no other; the op is by default that of the variant's name
    options            of `op_layer`
    """

    def decorate(template: Callable[P, Attrs]) -> OpVariants[P]:
        def variant(
            name: str,
            op: str = op,
            fluid_accepts: Mapping[str, str] | None = fluid_accepts,
            prefix: str = "",
            **words: Any,
        ) -> Layer[P]:
            made = _variant(template, name, words)
            return op_layer(op or name, typed, fluid_accepts, prefix=prefix, **options)(made)

        return variant

    return decorate


def _variant(template: Callable[P, T], name: str, words: Mapping[str, Any]) -> Callable[P, T]:
    """Returns a copy of the function, with this name, these defaults, and these words in its docstring."""
    function = cast(types.FunctionType, template)
    signature = inspect.signature(function)
    arguments = [one.replace(default=words.get(one.name, one.default)) for one in signature.parameters.values()]
    defaults = [one.default for one in arguments if one.default is not one.empty and one.kind is not one.KEYWORD_ONLY]
    made = types.FunctionType(function.__code__, function.__globals__, name, tuple(defaults), function.__closure__)
    made.__qualname__ = name
    made.__kwdefaults__ = {one.name: one.default for one in arguments if one.kind is one.KEYWORD_ONLY}
    made.__annotations__ = {key: kind for key, kind in function.__annotations__.items() if key[0] != "_"}
    made.__doc__ = (function.__doc__ or "").format(layer=name, **words)
    if made.__kwdefaults__:
        shown = [one for one in arguments if not one.name.startswith("_")]
        made.__signature__ = signature.replace(  # type: ignore[attr-defined]
            parameters=shown, return_annotation="Variable"
        )
    return cast("Callable[P, T]", made)
