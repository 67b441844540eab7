"""Positions of the largest and smallest elements, sorting, and tests for infinities and NaN."""

from __future__ import annotations

from collections.abc import Callable

from penstock._src.ir.variable import Variable
from penstock._src.layers.decorators import Attrs, named, op_layer, op_layer_with_results

__all__ = ["argmax", "argmin", "argsort", "has_inf", "has_nan", "isfinite"]


_POSITION_DOC = """Returns the indices of the {extreme} elements along an axis; the first one if several are equal.

Returns:
    Variable: the shape of `x` without that axis, int64.

Example:
    x = fluid.data('x', [None, 10])
    positions = fluid.layers.{layer}(x, axis=1)
"""


def _position_of(extreme: str, name_of_layer: str, op: str) -> Callable[..., Variable]:
    @named(name_of_layer, _POSITION_DOC.format(extreme=extreme, layer=name_of_layer))
    def layer(x: Variable, axis: int = 0) -> Attrs:
        return None

    accepts = {"x": "uint8 int16 int32 int64 float32 float64"}
    return op_layer(op, fluid_accepts=accepts, prefix=op, stop_gradient=True)(layer)


argmax = _position_of("largest", "argmax", "arg_max")
argmin = _position_of("smallest", "argmin", "arg_min")


@op_layer_with_results(
    "argsort",
    "Out Indices",
    fluid_accepts={"input": "int32 int64 float32 float64"},
    inputs={"X": "input"},
    stop_gradient=True,
)
def argsort(input: Variable, axis: int = -1, descending: bool = False, name: str | None = None) -> Attrs:
    """Sorts the elements along one axis.

    Args:
        descending: sort in descending order.

    Returns:
        tuple[Variable, Variable]: the sorted elements, same shape and type as `input`, and the index of each in
            `input`, same shape as `input`, int64.

    Example:
        x = fluid.data('x', [None, 10])
        ordered, positions = fluid.layers.argsort(x, axis=1)
    """


@op_layer("isfinite", fluid_accepts={"x": "int32 int64 float32 float64"})
def isfinite(x: Variable) -> Attrs:
    """Tests whether all elements are finite.

    Returns:
        Variable: shape [1], bool.
    """


@op_layer("isinf", prefix="isinf")
def has_inf(x: Variable) -> Attrs:
    """Tests whether any element is infinite.

    Returns:
        Variable: shape [1], bool.
    """


@op_layer("isnan", prefix="isnan")
def has_nan(x: Variable) -> Attrs:
    """Tests whether any element is NaN.

    Returns:
        Variable: shape [1], bool.
    """
