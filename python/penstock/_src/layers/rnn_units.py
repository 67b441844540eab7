"""Single steps of a GRU and of an LSTM, built from ordinary layers. The first call creates the parameters."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import TYPE_CHECKING

from penstock._src.base.argument_texts import GRU, LSTM
from penstock._src.base.doc_texts import with_texts
from penstock._src.ir import unique_name
from penstock._src.ir.variable import Variable
from penstock._src.layers import nn, reshaping, tensor, unary
from penstock._src.layers.arithmetic import elementwise_add
from penstock._src.layers.helper import LayerHelper
from penstock._src.parameters.param_attr import ParamAttr

if TYPE_CHECKING:
    from typing import Any


def attr_with_suffix(attr: Any, suffix: str) -> Any:
    """Returns a copy of the attribute with `suffix` appended to its name, or the attribute itself if it has no name."""
    if attr is None or not getattr(attr, "name", None):
        return attr
    attr = copy.deepcopy(attr)
    attr.name += suffix
    return attr


class _Unit:
    def __init__(
        self,
        name_scope: str,
        hidden_size: int,
        param_attr: ParamAttr | None = None,
        bias_attr: ParamAttr | bool | None = None,
        gate_activation: Callable[..., Variable] | None = None,
        activation: Callable[..., Variable] | None = None,
        dtype: str = "float32",
    ) -> None:
        unique_name.generate(name_scope)
        full_name = unique_name.generate(f"{name_scope}/{type(self).__name__}")
        self._helper = LayerHelper(full_name, name=full_name)
        self._hidden_size = hidden_size
        self._param_attr = param_attr
        self._bias_attr = bias_attr
        self._gate_activation = gate_activation or unary.sigmoid
        self._activation = activation or unary.tanh
        self._dtype = dtype
        self._built = False

    def full_name(self) -> str:
        """Returns the name that prefixes the names of the parameters.

        Returns:
            str: such as 'encoder/BasicGRUUnit_0'.

        Example:
            assert fluid.contrib.layers.BasicGRUUnit('encoder', 8).full_name() == 'encoder/BasicGRUUnit_0'
        """
        return self._helper.name

    def _build(self, rows: int) -> None:
        """Creates the parameters; `rows` is the width of the input and the hidden state."""
        raise NotImplementedError

    forward: Callable[..., Any]

    def _parameters(self, width: int, suffix: str = "") -> tuple[Callable[[int], Variable], Callable[[], Any]]:
        """Returns two functions: they create the weight (given its rows) and the bias (None for bias_attr=False)."""
        return (
            lambda rows: self._helper.create_parameter(
                attr_with_suffix(self._param_attr, suffix), [rows, width], self._dtype
            ),
            lambda: self._helper.create_parameter(
                attr_with_suffix(self._bias_attr, suffix), [width], self._dtype, is_bias=True
            ),
        )

    def __call__(self, input: Variable, *states: Variable) -> Any:
        if not self._built:
            if input.shape[-1] <= 0:
                raise ValueError(
                    f"{type(self).__name__}: the width of input must be known, but its shape is {input.shape}"
                )
            self._build(input.shape[-1] + self._hidden_size)
            self._built = True
        return self.forward(input, *states)


def _affine(parts: list[Variable], weight: Variable, bias: Variable | None) -> Variable:
    product = nn.matmul(tensor.concat(parts, 1), weight)
    return product if bias is None else elementwise_add(product, bias)


@with_texts(GRU)
class BasicGRUUnit(_Unit):
    """Computes one step of a GRU.

        {step}

    Args:
        param_attr (ParamAttr): attributes of the weights; '_gate' and '_candidate' are appended to its name.
        bias_attr (ParamAttr): attributes of the biases, likewise.

    Example:
        unit = fluid.contrib.layers.BasicGRUUnit('gru', hidden_size=8)
        state = unit(fluid.data('x', [None, 4]), fluid.data('h', [None, 8]))
    """

    def _build(self, rows: int) -> None:
        gate_weight, gate_bias = self._parameters(2 * self._hidden_size, "_gate")
        candidate_weight, candidate_bias = self._parameters(self._hidden_size, "_candidate")
        self._gate_weight, self._candidate_weight = gate_weight(rows), candidate_weight(rows)
        self._gate_bias, self._candidate_bias = gate_bias(), candidate_bias()

    def forward(self, input: Variable, pre_hidden: Variable) -> Variable:
        """Computes the next hidden state.

        Args:
            input (Variable): shape [N, width], float32 or float64.
            pre_hidden (Variable): the hidden state so far, shape [N, hidden_size], same type as `input`.

        Returns:
            Variable: the next hidden state, same shape and type as `pre_hidden`.

        Example:
            unit = fluid.contrib.layers.BasicGRUUnit('gru', hidden_size=8)
            state = unit(fluid.data('x', [None, 4]), fluid.data('h', [None, 8]))
        """
        gates = self._gate_activation(_affine([input, pre_hidden], self._gate_weight, self._gate_bias))
        reset, update = reshaping.split(gates, num_or_sections=2, dim=1)
        candidate = self._activation(_affine([input, reset * pre_hidden], self._candidate_weight, self._candidate_bias))
        return update * pre_hidden + (1 - update) * candidate


@with_texts(LSTM)
class BasicLSTMUnit(_Unit):
    """Computes one step of an LSTM.

        {step}

    Example:
        unit = fluid.contrib.layers.BasicLSTMUnit('lstm', hidden_size=8)
        h, c = unit(fluid.data('x', [None, 4]), fluid.data('h', [None, 8]), fluid.data('c', [None, 8]))
    """

    def __init__(
        self,
        name_scope: str,
        hidden_size: int,
        param_attr: ParamAttr | None = None,
        bias_attr: ParamAttr | bool | None = None,
        gate_activation: Callable[..., Variable] | None = None,
        activation: Callable[..., Variable] | None = None,
        forget_bias: float = 1.0,
        dtype: str = "float32",
    ) -> None:
        super().__init__(name_scope, hidden_size, param_attr, bias_attr, gate_activation, activation, dtype)
        self._forget_bias = tensor.fill_constant([1], dtype, forget_bias)
        self._forget_bias.stop_gradient = False

    def _build(self, rows: int) -> None:
        weight, bias = self._parameters(4 * self._hidden_size)
        self._weight, self._bias = weight(rows), bias()

    def forward(self, input: Variable, pre_hidden: Variable, pre_cell: Variable) -> tuple[Any, ...]:
        """Computes the next hidden state and cell.

        Args:
            input (Variable): shape [N, width], float32 or float64.
            pre_hidden (Variable): the hidden state so far, shape [N, hidden_size], same type as `input`.
            pre_cell (Variable): the cell so far, same shape and type as `pre_hidden`.

        Returns:
            tuple: (next hidden state, next cell), Variables of the same shape and type as `pre_hidden`.

        Example:
            unit = fluid.contrib.layers.BasicLSTMUnit('lstm', hidden_size=8)
            h, c = unit(fluid.data('x', [None, 4]), fluid.data('h', [None, 8]), fluid.data('c', [None, 8]))
        """
        i, j, f, o = reshaping.split(_affine([input, pre_hidden], self._weight, self._bias), num_or_sections=4, dim=-1)
        kept = pre_cell * self._gate_activation(elementwise_add(f, self._forget_bias))
        cell = elementwise_add(kept, self._gate_activation(i) * self._activation(j))
        return self._activation(cell) * self._gate_activation(o), cell
