"""A parameter as direction and length: w = g * v / |v|, in which g and v are trained (WeightNormParamAttr)."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING

from penstock._src.ir.framework import program_guard

if TYPE_CHECKING:
    from penstock._src.ir.types import VarType
    from penstock._src.ir.typing import Attrs
    from penstock._src.ir.variable import Parameter, Variable
    from penstock._src.layers.helper import LayerHelper
    from penstock._src.parameters.param_attr import WeightNormParamAttr


def create_weight_normalized(
    helper: LayerHelper, attr: WeightNormParamAttr, shape: list[int], dtype: VarType
) -> Variable:
    """Declares g and v in place of the parameter w, and adds the ops that compute w from them.

    The initial value of v is that of w, and the initial value of g is the length of v, so w has the same initial value.
    """
    axes = [axis for axis in range(len(shape)) if axis != attr.dim]
    length_shape = [1 if axis in axes else extent for axis, extent in enumerate(shape)]
    g_attr, v_attr = _named(attr, "_g"), _named(attr, "_v")
    startup, main = helper.startup_program.global_block(), helper.main_program.global_block()
    g = startup.create_parameter(length_shape, dtype, **g_attr._to_kwargs())
    v = startup.create_parameter(shape, dtype, **v_attr._to_kwargs(with_initializer=True))
    with program_guard(helper.startup_program):
        _op(helper, "assign", {"X": _length(helper, v, axes)}, {}, out=g)
    g = main.create_parameter(length_shape, dtype, **g_attr._to_kwargs())
    v = main.create_parameter(shape, dtype, **v_attr._to_kwargs())
    ratio = _op(helper, "elementwise_div", {"X": g, "Y": _length(helper, v, axes)}, {"axis": -1})
    # A vector, which elementwise_mul aligns with the axis.
    flat = helper.create_variable_for_type_inference(dtype)
    helper.append_op(
        "reshape2",
        {"X": ratio},
        {"Out": flat, "XShape": helper.create_variable_for_type_inference(dtype, stop_gradient=True)},
        {"shape": [-1]},
    )
    return _op(helper, "elementwise_mul", {"X": v, "Y": flat}, {"axis": -1 if attr.dim is None else attr.dim})


def _named(attr: WeightNormParamAttr, suffix: str) -> WeightNormParamAttr:
    part = copy.copy(attr)
    part.name = f"{attr.name}{suffix}"
    return part


def _op(
    helper: LayerHelper, op_type: str, inputs: dict[str, Variable], attrs: Attrs, out: Variable | None = None
) -> Variable:
    if out is None:
        out = helper.create_variable_for_type_inference(next(iter(inputs.values())).dtype)
    helper.append_op(op_type, inputs, {"Out": out}, attrs)
    return out


def _length(helper: LayerHelper, x: Parameter, axes: list[int]) -> Variable:
    """Returns the Euclidean length over the axes, which are kept with extent 1."""
    squares = _op(helper, "square", {"X": x}, {})
    total = (
        _op(helper, "reduce_sum", {"X": squares}, {"dim": axes, "keep_dim": True, "reduce_all": False})
        if axes
        else squares
    )
    return _op(helper, "sqrt", {"X": total}, {})
