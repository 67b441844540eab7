"""Positions of the largest and smallest elements, sorting, and tests for infinities and NaN."""

from __future__ import annotations

from penstock._src.ir.variable import Variable
from penstock._src.layers.decorators import Attrs, op_layer, op_layer_with_results

__all__ = ["argmax", "argmin", "argsort", "has_inf", "has_nan", "isfinite"]


@op_layer(
    "arg_max", fluid_accepts={"x": "uint8 int16 int32 int64 float32 float64"}, prefix="arg_max", stop_gradient=True
)
def argmax(x: Variable, axis: int = 0) -> Attrs:
    """Returns the indices of the largest elements along an axis; the first one if several are equal.

    Returns:
        Variable: the shape of `x` without that axis, int64.

    Example:
        x = fluid.data('x', [None, 10])
        best = fluid.layers.argmax(x, axis=1)
    """


@op_layer(
    "arg_min", fluid_accepts={"x": "uint8 int16 int32 int64 float32 float64"}, prefix="arg_min", stop_gradient=True
)
def argmin(x: Variable, axis: int = 0) -> Attrs:
    """Returns the indices of the smallest elements along an axis; the first one if several are equal.

    Returns:
        Variable: the shape of `x` without that axis, int64.

    Example:
        x = fluid.data('x', [None, 10])
        worst = fluid.layers.argmin(x, axis=1)
    """


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
