"""Checks of what a script declares in a block: the shape of a parameter, a second declaration, unknown keywords."""

from __future__ import annotations

import inspect
import warnings
from typing import TYPE_CHECKING

from penstock._src.base.call_site import stack_level
from penstock._src.base.errors import suggestion
from penstock._src.ir.types import checked_shape

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from typing import Any

    from penstock._src.ir.types import VarType
    from penstock._src.ir.variable import Variable


def checked_parameter_shape(name: str, shape: Sequence[int]) -> list[int]:
    """Returns the shape of a parameter as a list. Raises if an extent is not above 0."""
    extents = checked_shape(name, shape)
    if not extents or min(extents) <= 0:
        raise ValueError(f"extents of parameter {name} must be above 0, but its shape is {tuple(extents)}")
    return extents


def warn_of_unknown_keywords(function: Callable[..., Any], unknown: Iterable[str]) -> None:
    """Warns of each keyword that a function ignores, as Fluid does silently."""
    for keyword in unknown:
        known = inspect.signature(function).parameters
        warnings.warn(
            f"{function.__name__} has no argument {keyword}, which is ignored{suggestion(keyword, known)}",
            stacklevel=stack_level(),
        )


def require_same_declaration(
    var: Variable,
    kind: VarType,
    shape: Sequence[int] | None,
    dtype: int | None,
    lod_level: int | None,
    persistable: bool | None,
) -> None:
    """Raises if a second declaration contradicts the first."""
    for what, asked, there in (
        ("type", kind, var.type),
        ("shape", shape, list(var.shape)),
        ("data type", dtype, int(var.dtype)),
        ("lod_level", lod_level, var.lod_level),
        ("persistable", persistable, var.persistable),
    ):
        if asked is not None and asked != there:
            raise ValueError(
                f"variable {var.name} already exists with the {what} {there}; it cannot also have the {what} {asked}"
            )
