"""GRUs and LSTMs with several layers over padded sequences, built from ordinary layers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock._src.base.argument_texts import RECURRENT
from penstock._src.base.doc_texts import with_texts
from penstock._src.layers import nn, reshaping, sequence_padding, slicing
from penstock._src.layers.arithmetic import elementwise_mul
from penstock._src.layers.rnn_units import BasicGRUUnit, BasicLSTMUnit, attr_with_suffix
from penstock._src.layers.static_rnn import StaticRNN
from penstock._src.layers.tensor import concat

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from penstock._src.ir.variable import Variable
    from penstock._src.parameters.param_attr import ParamAttr


_NETWORK = {
    **RECURRENT,
    "input": """input (Variable): shape [sequences, steps, width], or [steps, sequences, width] without
    `batch_first`; float32 or float64.""",
    "init_hidden": """init_hidden (Variable | None): the initial hidden states, shape [num_layers, sequences,
    hidden_size], or [num_layers * 2, ...] if `bidirectional`; None: zeros.""",
    "num_layers": "num_layers (int): number of layers.",
    "sequence_length": """sequence_length (Variable | None): the number of steps of each sequence, shape [sequences];
    None: every sequence has all steps.""",
    "dropout_prob": """dropout_prob (float): the probability that an element of a layer's output is set to 0 for the
    next layer.""",
    "bidirectional": "bidirectional (bool): whether a second network runs from the last step to the first.",
    "batch_first": "batch_first (bool): whether the sequences are the first axis.",
    "param_attr": "param_attr (ParamAttr): attributes of the weights; direction and layer are appended to its name.",
    "bias_attr": "bias_attr (ParamAttr): attributes of the biases, likewise.",
}


@with_texts(_NETWORK)
def basic_gru(
    input: Variable,
    init_hidden: Variable | None,
    hidden_size: int,
    num_layers: int = 1,
    sequence_length: Variable | None = None,
    dropout_prob: float = 0.0,
    bidirectional: bool = False,
    batch_first: bool = True,
    param_attr: ParamAttr | None = None,
    bias_attr: ParamAttr | None = None,
    gate_activation: Callable[..., Any] | None = None,
    activation: Callable[..., Any] | None = None,
    dtype: str = "float32",
    name: str = "basic_gru",
) -> tuple[Any, ...]:
    """Runs a GRU with several layers over padded sequences.

    Args:
        hidden_size (int): width of the hidden states.

    Returns:
        tuple: (outputs of the last layer, last hidden states). The outputs have the shape of `input` with width
        hidden_size, or 2 * hidden_size if `bidirectional`; the states have the shape of `init_hidden`.

    Raises:
        TypeError: `input` is not a Variable.

    Example:
        x = fluid.data('x', [None, 7, 4])
        out, last = fluid.contrib.layers.basic_gru(x, None, hidden_size=8, num_layers=2, bidirectional=True)
    """

    def unit(name: str, param_attr: ParamAttr | None, bias_attr: ParamAttr | None) -> BasicGRUUnit:
        return BasicGRUUnit(name, hidden_size, param_attr, bias_attr, gate_activation, activation, dtype)

    return _run(
        _units(unit, name, num_layers, bidirectional, param_attr, bias_attr),
        input,
        [init_hidden],
        hidden_size,
        sequence_length,
        batch_first,
        dict(dropout_prob=dropout_prob),
    )


@with_texts(_NETWORK, and_cell=" and the cell")
def basic_lstm(
    input: Variable,
    init_hidden: Variable | None,
    init_cell: Variable | None,
    hidden_size: int,
    num_layers: int = 1,
    sequence_length: Variable | None = None,
    dropout_prob: float = 0.0,
    bidirectional: bool = False,
    batch_first: bool = True,
    param_attr: ParamAttr | None = None,
    bias_attr: ParamAttr | None = None,
    gate_activation: Callable[..., Any] | None = None,
    activation: Callable[..., Any] | None = None,
    forget_bias: float = 1.0,
    dtype: str = "float32",
    name: str = "basic_lstm",
) -> tuple[Any, ...]:
    """Runs an LSTM with several layers over padded sequences.

    Args:
        init_cell (Variable | None): the initial cell states, same shape as `init_hidden`; None: zeros.
        hidden_size (int): width of the states.

    Returns:
        tuple: (outputs of the last layer, last hidden states, last cell states). The outputs have the shape of `input`
        with width hidden_size, or 2 * hidden_size if `bidirectional`; the states have the shape of `init_hidden`.

    Raises:
        TypeError: `input` is not a Variable.

    Example:
        x, length = fluid.data('x', [None, 7, 4]), fluid.data('length', [None], 'int64')
        out, h, c = fluid.contrib.layers.basic_lstm(x, None, None, hidden_size=8, sequence_length=length)
    """

    def unit(name: str, param_attr: ParamAttr | None, bias_attr: ParamAttr | None) -> BasicLSTMUnit:
        return BasicLSTMUnit(name, hidden_size, param_attr, bias_attr, gate_activation, activation, forget_bias, dtype)

    dropout = dict(dropout_prob=dropout_prob, dropout_implementation="upscale_in_train")
    return _run(
        _units(unit, name, num_layers, bidirectional, param_attr, bias_attr),
        input,
        [init_hidden, init_cell],
        hidden_size,
        sequence_length,
        batch_first,
        dropout,
    )


def _units(
    make: Callable[..., Any],
    name: str,
    num_layers: int,
    bidirectional: bool,
    param_attr: ParamAttr | None,
    bias_attr: ParamAttr | None,
) -> list[list[Callable[..., Any]]]:
    """Returns one list of units, one for each layer, for each direction."""
    directions = [("_layers_", "fw")] + ([("_reverse_layers_", "bw")] if bidirectional else [])
    return [
        [
            make(
                name + infix + str(i),
                attr_with_suffix(param_attr, f"_{short}_w_{i}"),
                attr_with_suffix(bias_attr, f"_{short}_b_{i}"),
            )
            for i in range(num_layers)
        ]
        for infix, short in directions
    ]


def _run(
    units: list[list[Callable[..., Any]]],
    input: Variable,
    inits: list[Variable | None],
    hidden_size: int,
    sequence_length: Variable | None,
    batch_first: bool,
    dropout: Mapping[str, Any],
) -> tuple[Variable, ...]:
    """Returns (outputs, each last state) of both directions, concatenated."""
    if batch_first:
        input = reshaping.transpose(input, [1, 0, 2])
    mask = None
    if sequence_length is not None:
        mask = sequence_padding.sequence_mask(sequence_length, maxlen=slicing.shape(input)[0], dtype="float32")
        mask = reshaping.transpose(mask, [1, 0])
    layers, directions = len(units[0]), len(units)
    given = [init for init in inits if init is not None]
    if inits[0] is not None:
        inits = [reshaping.reshape(init, [layers, directions, -1, hidden_size]) for init in given]
    outs: list[Variable] = []
    lasts: list[list[Variable]] = []
    for direction, of_direction in enumerate(units):
        rows, rows_mask = input, mask
        if direction == 1:
            rows = slicing.reverse(input, axis=[0])
            rows_mask = None if mask is None else slicing.reverse(mask, axis=[0])
        out, last = _run_direction(of_direction, rows, rows_mask, inits, direction, hidden_size, dropout)
        outs.append(out if direction == 0 else slicing.reverse(out, axis=[0]))
        lasts.append(last)
    if directions == 1:
        out, last = outs[0], lasts[0]
    else:
        out = concat(outs, axis=2)
        last = [concat(list(both), axis=1) for both in zip(*lasts)]
        last = [reshaping.reshape(state, [layers * directions, -1, hidden_size]) for state in last]
    return tuple([reshaping.transpose(out, [1, 0, 2]) if batch_first else out] + last)


def _run_direction(
    units: list[Callable[..., Any]],
    input: Variable,
    mask: Variable | None,
    inits: list[Variable | None],
    direction: int,
    hidden_size: int,
    dropout: Mapping[str, Any],
) -> tuple[Variable, list[Variable]]:
    """Returns (outputs of the last layer, [each last state of all layers])."""
    network = StaticRNN()
    with network.step():
        row = network.step_input(input)
        goes_on = None if mask is None else network.step_input(mask)
        for i, unit in enumerate(units):
            before = [_memory(network, init, i, direction, input, hidden_size) for init in inits]
            after = unit(row, *before)
            after = list(after) if isinstance(after, tuple) else [after]
            if goes_on is not None:
                after = [
                    elementwise_mul(new, goes_on, axis=0) - elementwise_mul(old, goes_on - 1, axis=0)
                    for old, new in zip(before, after)
                ]
            for old, new in zip(before, after):
                network.update_memory(old, new)
            for new in after:
                network.step_output(new)
            row = after[0]
            if dropout["dropout_prob"] is not None and dropout["dropout_prob"] > 0:
                row = nn.dropout(row, **dropout)
        network.step_output(row)
    made = network()
    lasts = []
    for at in range(len(inits)):
        ends = [made[i * len(inits) + at][-1] for i in range(len(units))]
        lasts.append(ends)
    joined = [reshaping.reshape(concat(ends, axis=0), [len(units), -1, hidden_size]) for ends in lasts]
    return made[-1], joined


def _memory(
    network: StaticRNN, init: Variable | None, layer: int, direction: int, input: Variable, hidden_size: int
) -> Variable:
    memory: Variable
    if init is not None:
        memory = network.memory(init=init[layer, direction])
    else:
        memory = network.memory(batch_ref=input, shape=[-1, hidden_size])
    return memory
