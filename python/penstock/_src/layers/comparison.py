"""Comparisons of tensors, counters, and the test for empty tensors."""

from __future__ import annotations

from penstock._src.ir.types import float_attr
from penstock._src.ir.variable import Variable
from penstock._src.layers.decorators import Attrs, layer, op_layer
from penstock._src.layers.helper import LayerHelper
from penstock._src.layers.variants import op_layers


@layer("increment", fluid_accepts={"x": "int32 int64 float32 float64"})
def increment(x: Variable, value: float = 1.0, in_place: bool = True) -> Variable:
    """Adds a number to a variable of one element.

    Args:
        x (Variable): shape [1].
        value (float): the number.
        in_place (bool): True: change `x` itself.

    Returns:
        Variable: `x` itself, or a new variable of the same shape and type without `in_place`.

    Example:
        counter = fluid.layers.fill_constant([1], 'int64', 0)
        fluid.layers.increment(counter)
    """
    helper = LayerHelper("increment").takes(x=x)
    out = x if in_place else helper.create_variable_for_type_inference(x.dtype)
    helper.append_op("increment", {"X": x}, {"Out": out}, {"step": float_attr(value)})
    return out


@op_layer("less_than", fluid_accepts={"x y": "int32 int64 float32 float64"}, receives="cond", stop_gradient=True)
def less_than(x: Variable, y: Variable, force_cpu: bool | None = None, cond: Variable | None = None) -> Attrs:
    """Tests whether x < y, element by element.

    Args:
        y: same type as `x`; its shape is that of `x` or can be broadcast to it.
        force_cpu: keep the result in host memory.
        cond: receives the result, same shape as `x`, bool; None: a new Variable.

    Returns:
        Variable: same shape as `x`, bool, with stop_gradient set.

    Raises:
        TypeError: `x` or `y` is not a Variable, or has an unsupported element type, or `force_cpu` is not a bool.

    Example:
        x = fluid.data('x', [None, 4])
        y = fluid.data('y', [None, 4])
        z = fluid.layers.less_than(x, y)
    """
    if force_cpu is not None and not isinstance(force_cpu, bool):
        raise TypeError(f"less_than: force_cpu must be a bool, not {force_cpu!r}")
    return None


@op_layers(receives="cond", stop_gradient=True)
def _comparison(x: Variable, y: Variable, cond: Variable | None = None) -> Attrs:
    """Tests whether {formula}, element by element.

    Args:
        y: same type as `x`; its shape is that of `x` or can be broadcast to it.
        cond: receives the result; bool.

    Returns:
        Variable: same shape as `x`, bool, with stop_gradient set.

    Example:
        x = fluid.data('x', [None, 4])
        y = fluid.data('y', [None, 4])
        z = fluid.layers.{layer}(x, y)
    """


less_equal = _comparison("less_equal", formula="x <= y")
greater_than = _comparison("greater_than", formula="x > y")
greater_equal = _comparison("greater_equal", formula="x >= y")
equal = _comparison("equal", formula="x == y")
not_equal = _comparison("not_equal", formula="x != y")


@op_layer(
    "is_empty", fluid_accepts={"x": "int32 int64 float32 float64", "cond": "bool"}, receives="cond", stop_gradient=True
)
def is_empty(x: Variable, cond: Variable | None = None) -> Attrs:
    """Tests whether a variable has no elements.

    Args:
        cond: receives the result, shape [1]; None: a new Variable.

    Returns:
        Variable: shape [1], bool, with stop_gradient set.
    """
