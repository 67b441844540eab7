"""Single steps of recurrent layers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock._src.layers.decorators import layer
from penstock._src.layers.helper import LayerHelper
from penstock._src.layers.nn import fc
from penstock._src.layers.tensor import concat
from penstock._src.parameters.param_attr import ParamAttr

if TYPE_CHECKING:
    from penstock._src.ir.variable import Variable


_ACTIVATION_NUMBERS = {"identity": 0, "sigmoid": 1, "tanh": 2, "relu": 3}


@layer("gru_unit", fluid_accepts={"input hidden": "float32 float64"})
def gru_unit(
    input: Variable,
    hidden: Variable,
    size: int,
    param_attr: ParamAttr | None = None,
    bias_attr: ParamAttr | bool | None = None,
    activation: str = "tanh",
    gate_activation: str = "sigmoid",
    origin_mode: bool = False,
) -> tuple[Variable, Variable, Variable]:
    """Computes one step of a gated recurrent unit.

    Args:
        input (Variable): the terms of the two gates and the candidate, shape [N, size].
        hidden (Variable): the previous hidden state, shape [N, size / 3], same type as `input`.
        size (int): three times the width of the hidden state.
        param_attr (ParamAttr | None): the weights, of shape [size / 3, size].
        bias_attr (ParamAttr | bool | None): the bias, of shape [1, size]; False: no bias.
        activation (str): activation of the candidate: 'sigmoid', 'tanh', 'relu' or 'identity'.
        gate_activation (str): activation of the gates: one of the same names.
        origin_mode (bool): as in dynamic_gru.

    Returns:
        tuple[Variable, Variable, Variable]: the new hidden state, shape [N, size / 3], the previous hidden state after
            the reset gate, shape [N, size / 3], and the gates and the candidate, shape [N, size]; same type as `input`.

    Raises:
        ValueError: an activation is unknown.

    Example:
        x = fluid.data('x', [None, 12])
        before = fluid.data('before', [None, 4])
        hidden, reset, gates = fluid.layers.gru_unit(x, before, size=12)
    """
    helper = LayerHelper("gru_unit", param_attr=param_attr, bias_attr=bias_attr).takes(input=input)
    dtype = input.dtype
    width = size // 3
    for which, name in (("activation", activation), ("gate_activation", gate_activation)):
        if name not in _ACTIVATION_NUMBERS:
            raise ValueError(f"gru_unit: {which} must be one of {', '.join(_ACTIVATION_NUMBERS)}, not {name!r}")
    inputs = {
        "Input": input,
        "HiddenPrev": hidden,
        "Weight": helper.create_parameter(helper.param_attr, [width, 3 * width], dtype),
    }
    gate, reset, updated = (helper.create_variable_for_type_inference(dtype) for _ in range(3))
    if helper.bias_attr:
        inputs["Bias"] = helper.create_parameter(helper.bias_attr, [1, 3 * width], dtype, is_bias=True)
    helper.append_op(
        "gru_unit",
        inputs,
        {"Gate": gate, "ResetHiddenPrev": reset, "Hidden": updated},
        {
            "activation": _ACTIVATION_NUMBERS[activation],
            "gate_activation": _ACTIVATION_NUMBERS[gate_activation],
            "origin_mode": origin_mode,
        },
    )
    return updated, reset, gate


@layer("lstm_unit", fluid_accepts={"x_t hidden_t_prev cell_t_prev": "float32 float64"})
def lstm_unit(
    x_t: Variable,
    hidden_t_prev: Variable,
    cell_t_prev: Variable,
    forget_bias: float = 0.0,
    param_attr: ParamAttr | None = None,
    bias_attr: ParamAttr | None = None,
    name: str | None = None,
) -> tuple[Variable, Variable]:
    """Computes one step of a long short-term memory network.

    Args:
        x_t (Variable): the input of the step, shape [N, D].
        hidden_t_prev (Variable): the previous hidden state, shape [N, W], same type as `x_t`.
        cell_t_prev (Variable): the previous cell state, shape [N, W], same type as `x_t`.
        forget_bias (float): added to the forget gate.
        param_attr (ParamAttr | None): the weights, of shape [D + W, 4 * W].
        bias_attr (ParamAttr | None): the bias, of shape [4 * W].

    Returns:
        tuple[Variable, Variable]: the new hidden state and the new cell state, shape [N, W], same type as `x_t`.

    Raises:
        ValueError: the shapes are incompatible.

    Example:
        x, hidden, cell = (fluid.data(name, [8, 4]) for name in ('x', 'hidden', 'cell'))
        hidden, cell = fluid.layers.lstm_unit(x, hidden, cell)
    """
    helper = LayerHelper("lstm_unit", name=name).takes(x_t=x_t, hidden_t_prev=hidden_t_prev, cell_t_prev=cell_t_prev)
    for what, var in (("x_t", x_t), ("hidden_t_prev", hidden_t_prev), ("cell_t_prev", cell_t_prev)):
        if len(var.shape) != 2:
            raise ValueError(f"lstm_unit: {what} must have 2 axes, but its shape is {var.shape}")
        if var.shape[0] != x_t.shape[0]:
            raise ValueError(f"lstm_unit: {what} has {var.shape[0]} rows, but x_t has {x_t.shape[0]}")
    if hidden_t_prev.shape[1] != cell_t_prev.shape[1]:
        raise ValueError(
            f"lstm_unit: hidden_t_prev and cell_t_prev must have the same width, not {hidden_t_prev.shape[1]} and "
            f"{cell_t_prev.shape[1]}"
        )
    if bias_attr is None:
        bias_attr = ParamAttr()
    joined = concat([x_t, hidden_t_prev], axis=1)
    gates = fc(joined, 4 * cell_t_prev.shape[1], param_attr=param_attr, bias_attr=bias_attr)
    cell, hidden = (helper.create_variable_for_type_inference(x_t.dtype) for _ in range(2))
    helper.append_op(
        "lstm_unit", {"X": gates, "C_prev": cell_t_prev}, {"C": cell, "H": hidden}, {"forget_bias": forget_bias}
    )
    return hidden, cell
