# Written by tools/dev/gen_stubs.py.
# mypy: disable-error-code="override"
from typing import Any, Callable, Iterable, Iterator

from penstock.fluid.layers.arithmetic import elementwise_mul as elementwise_mul
from penstock.fluid.layers.rnn_units import BasicGRUUnit as BasicGRUUnit
from penstock.fluid.layers.rnn_units import BasicLSTMUnit as BasicLSTMUnit
from penstock.fluid.layers.rnn_units import attr_with_suffix as attr_with_suffix
from penstock.fluid.layers.static_rnn import StaticRNN as StaticRNN
from penstock.fluid.layers.tensor import concat as concat
from penstock.fluid.param_attr import ParamAttr as ParamAttr
from penstock.fluid.variable import Variable as Variable

def basic_gru(input: Variable, init_hidden: Variable, hidden_size: int, num_layers: int = ..., sequence_length: Variable | None = ..., dropout_prob: float = ..., bidirectional: bool = ..., batch_first: bool = ..., param_attr: ParamAttr | None = ..., bias_attr: ParamAttr | None = ..., gate_activation: Callable[..., Any] | None = ..., activation: Callable[..., Any] | None = ..., dtype: str = ..., name: str = ...) -> tuple[Any, ...]: ...
def basic_lstm(input: Variable, init_hidden: Variable, init_cell: Variable, hidden_size: int, num_layers: int = ..., sequence_length: Variable | None = ..., dropout_prob: float = ..., bidirectional: bool = ..., batch_first: bool = ..., param_attr: ParamAttr | None = ..., bias_attr: ParamAttr | None = ..., gate_activation: Callable[..., Any] | None = ..., activation: Callable[..., Any] | None = ..., forget_bias: float = ..., dtype: str = ..., name: str = ...) -> tuple[Any, ...]: ...
__all__: list[str]
