"""Positions of the largest and smallest elements, sorting, and tests for infinities and NaN."""

from __future__ import annotations

from penstock._src.ir.variable import Variable
from penstock._src.layers.decorators import Attrs, op_layer, op_layer_with_results
from penstock._src.layers.variants import op_layers


@op_layers(fluid_accepts={"x": "uint8 int16 int32 int64 float32 float64"}, stop_gradient=True)
def _position_of(x: Variable, axis: int = 0) -> Attrs:
    """Returns the indices of the {extreme} elements along an axis; the first one if several are equal.

    Returns:
        Variable: the shape of `x` without that axis, int64.

    Example:
        x = fluid.data('x', [None, 10])
        positions = fluid.layers.{layer}(x, axis=1)
    """


argmax = _position_of("argmax", "arg_max", prefix="arg_max", extreme="largest")
argmin = _position_of("argmin", "arg_min", prefix="arg_min", extreme="smallest")


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
