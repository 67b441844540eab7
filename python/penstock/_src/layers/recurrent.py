"""Recurrent layers over sequences."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock._src.ir.types import VarType
from penstock._src.layers.decorators import layer
from penstock._src.layers.helper import LayerHelper, require_rank
from penstock._src.parameters.param_attr import ParamAttr

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from penstock._src.ir.variable import Variable
    from penstock._src.parameters.initializer import Initializer


def _lstm_inputs(
    helper: LayerHelper,
    input: Variable,
    width: int,
    rows: int,
    use_peepholes: bool,
    dtype: Any,
    h_0: Variable | None,
    c_0: Variable | None,
) -> tuple[dict[str, Variable], Callable[[], Variable]]:
    """Returns (the slots that lstm and lstmp share, a function that creates the bias)."""
    inputs = {"Input": input, "Weight": helper.create_parameter(helper.param_attr, [rows, 4 * width], dtype)}
    if h_0 is not None:
        inputs["H0"] = h_0
    if c_0 is not None:
        inputs["C0"] = c_0
    bias = [1, (7 if use_peepholes else 4) * width]
    return inputs, lambda: helper.create_parameter(helper.bias_attr, bias, dtype, is_bias=True)


@layer(fluid_accepts={"input h_0 c_0": "float32 float64"})
def dynamic_lstm(
    input: Variable,
    size: int,
    h_0: Variable | None = None,
    c_0: Variable | None = None,
    param_attr: ParamAttr | None = None,
    bias_attr: ParamAttr | bool | None = None,
    use_peepholes: bool = True,
    is_reverse: bool = False,
    gate_activation: str = "sigmoid",
    cell_activation: str = "tanh",
    candidate_activation: str = "tanh",
    dtype: str | VarType = "float32",
    name: str | None = None,
) -> tuple[Variable, Variable]:
    """Runs a long short-term memory network over each sequence.

    The input holds the terms of the four gates for each row; a fully connected layer of `size` columns computes it.

    Args:
        input (Variable): shape [rows, size] with sequences.
        size (int): four times the width of the cell.
        h_0 (Variable | None): the initial hidden state, shape [sequences, size / 4]; None: zeros.
        c_0 (Variable | None): the initial cell state, shape [sequences, size / 4]; None: zeros.
        param_attr (ParamAttr | None): the weights, of shape [size / 4, size].
        bias_attr (ParamAttr | None): the bias, of shape [1, size], with peepholes [1, 7 * size / 4].
        use_peepholes (bool): whether the gates read the cell state.
        cell_activation (str): activation of the cell state: one of the same names.
        dtype (str | VarType): type of the parameters.

    Returns:
        tuple[Variable, Variable]: the hidden states and the cell states, each of shape [rows, size / 4] with the
            sequences of `input` and of type `dtype`.

    Raises:
        TypeError: `input`, `h_0` or `c_0` is not a Variable, or has an unsupported element type.
        ValueError: `bias_attr` is False.

    Example:
        x = fluid.data('x', [None, 8], lod_level=1)
        hidden, cell = fluid.layers.dynamic_lstm(fluid.layers.fc(x, size=16), size=16)

    Reference:
        Hochreiter and Schmidhuber, Long Short-Term Memory, Neural Computation 1997.
    """
    if bias_attr is False:
        raise ValueError("dynamic_lstm: bias_attr must not be False")
    helper = LayerHelper("lstm", param_attr=param_attr, bias_attr=bias_attr, name=name)
    width = size // 4
    inputs, make_bias = _lstm_inputs(helper, input, width, width, use_peepholes, dtype, h_0, c_0)
    inputs["Bias"] = make_bias()
    slots = ("Hidden", "Cell", "BatchGate", "BatchCellPreAct")
    outputs = {slot: helper.create_variable_for_type_inference(dtype) for slot in slots}
    helper.append_op(
        "lstm",
        inputs,
        outputs,
        {
            "use_peepholes": use_peepholes,
            "is_reverse": is_reverse,
            "gate_activation": gate_activation,
            "cell_activation": cell_activation,
            "candidate_activation": candidate_activation,
        },
    )
    return outputs["Hidden"], outputs["Cell"]


@layer(fluid_accepts={"input h_0 c_0": "float32 float64"}, like=dynamic_lstm)
def dynamic_lstmp(
    input: Variable,
    size: int,
    proj_size: int,
    param_attr: ParamAttr | None = None,
    bias_attr: ParamAttr | bool | None = None,
    use_peepholes: bool = True,
    is_reverse: bool = False,
    gate_activation: str = "sigmoid",
    cell_activation: str = "tanh",
    candidate_activation: str = "tanh",
    proj_activation: str = "tanh",
    dtype: str | VarType = "float32",
    name: str | None = None,
    h_0: Variable | None = None,
    c_0: Variable | None = None,
    cell_clip: float | None = None,
    proj_clip: float | None = None,
) -> tuple[Variable, Variable]:
    """Runs a long short-term memory network with a projection (LSTMP) over each sequence.

    The output of each step is projected to `proj_size` elements, which the next step reads. The input holds the terms
    of the four gates for each row; a fully connected layer of `size` columns computes it.

    Args:
        proj_size (int): width of the projection.
        param_attr (ParamAttr | None): both weights: [proj_size, size] and [size / 4, proj_size].
        proj_activation (str): activation of the projection: one of the same names.
        h_0 (Variable | None): the initial projection, shape [sequences, proj_size]; None: zeros.
        cell_clip (float | None): clips the cell state to [-cell_clip, cell_clip].
        proj_clip (float | None): clips the projection to [-proj_clip, proj_clip].

    Returns:
        tuple[Variable, Variable]: the projections, shape [rows, proj_size], and the cell states, shape [rows,
            size / 4], with the sequences of `input` and of type `dtype`.

    Raises:
        ValueError: `bias_attr` is False.
        TypeError: `input`, `h_0` or `c_0` is not a Variable, or has an unsupported element type.

    Example:
        x = fluid.data('x', [None, 8], lod_level=1)
        projection, cell = fluid.layers.dynamic_lstmp(fluid.layers.fc(x, size=16), size=16, proj_size=3)
    """
    if bias_attr is False:
        raise ValueError("dynamic_lstmp: bias_attr must not be False")
    helper = LayerHelper("lstmp", param_attr=param_attr, bias_attr=bias_attr, name=name)
    width = size // 4
    inputs, make_bias = _lstm_inputs(helper, input, width, proj_size, use_peepholes, dtype, h_0, c_0)
    inputs["ProjWeight"] = helper.create_parameter(helper.param_attr, [width, proj_size], dtype)
    inputs["Bias"] = make_bias()
    outputs = {slot: helper.create_variable_for_type_inference(dtype) for slot in ("Projection", "Cell")}
    helper.create_variable_for_type_inference(dtype)  # an output of an older version of the op; only uses up a name
    for slot in ("BatchHidden", "BatchGate", "BatchCellPreAct"):
        outputs[slot] = helper.create_variable_for_type_inference(dtype)
    attrs = {
        "use_peepholes": use_peepholes,
        "is_reverse": is_reverse,
        "gate_activation": gate_activation,
        "cell_activation": cell_activation,
        "candidate_activation": candidate_activation,
        "proj_activation": proj_activation,
    }
    attrs.update((name, value) for name, value in (("cell_clip", cell_clip), ("proj_clip", proj_clip)) if value)
    helper.append_op("lstmp", inputs, outputs, attrs)
    return outputs["Projection"], outputs["Cell"]


@layer("lstm", fluid_accepts={"input init_h init_c": "float32 float64"})
def lstm(
    input: Variable,
    init_h: Variable,
    init_c: Variable,
    max_len: int,
    hidden_size: int,
    num_layers: int,
    dropout_prob: float = 0.0,
    is_bidirec: bool = False,
    is_test: bool = False,
    name: str | None = None,
    default_initializer: Initializer | None = None,
    seed: int = -1,
) -> tuple[Any, ...]:
    """Runs an LSTM with several layers over sequences of equal length.

    All weights are one parameter, in the order that OPS.md states for the op cudnn_lstm.

    Args:
        input (Variable): shape [steps, sequences, width].
        init_h (Variable): the initial hidden states, shape [num_layers, sequences, hidden_size], or [num_layers * 2,
            ...] with `is_bidirec`; same type as `input`.
        init_c (Variable): the initial cell states, same shape and type as `init_h`.
        max_len (int): the maximum number of steps.
        hidden_size (int): width of the states.
        num_layers (int): number of layers.
        dropout_prob (float): the probability that an element between two layers is set to 0 in training.
        is_bidirec (bool): whether each layer runs over the steps in both directions.
        is_test (bool): True: no dropout.
        default_initializer (Initializer): initializer of the weights; None: the default initializer of parameters.
        seed (int): seed of dropout; -1: a new seed in each run.

    Returns:
        tuple: (output, last hidden states, last cell states), Variables of the type of `input`. The output has shape
        [steps, sequences, hidden_size], or [steps, sequences, 2 * hidden_size] with `is_bidirec`; the states have the
        shape of `init_h`.

    Raises:
        ValueError: `input` has fewer than 3 axes.
        penstock.ProgramError: the shapes are incompatible, or `input` has more than `max_len` steps.

    Example:
        x = fluid.data('x', [20, None, 16])
        start = fluid.layers.fill_constant_batch_size_like(x, [2, -1, 32], 'float32', 0.0, 1, 1)
        out, last_h, last_c = fluid.layers.lstm(x, start, start, max_len=20, hidden_size=32, num_layers=2)
    """
    helper = LayerHelper("cudnn_lstm", name=name).takes(input=input, init_h=init_h, init_c=init_c)
    require_rank("lstm", "input", input, 3)
    directions = 2 if is_bidirec else 1
    widths = [input.shape[-1]] + [hidden_size * directions] * (num_layers - 1)
    count = sum(directions * 4 * hidden_size * (width + hidden_size + 2) for width in widths)
    weight = helper.create_parameter(helper.param_attr, [count], input.dtype, default_initializer=default_initializer)
    out, last_h, last_c = (helper.create_variable_for_type_inference(input.dtype) for _ in range(3))
    cache = helper.create_variable(persistable=True, type=VarType.RAW, stop_gradient=True)
    helper.append_op(
        "cudnn_lstm",
        {"Input": input, "InitH": init_h, "InitC": init_c, "W": weight, "Cache": cache},
        {"Out": out, "last_h": last_h, "last_c": last_c},
        {
            "max_len": max_len,
            "is_bidirec": is_bidirec,
            "input_size": input.shape[-1],
            "hidden_size": hidden_size,
            "num_layers": num_layers,
            "is_test": is_test,
            "dropout_prob": dropout_prob,
            "seed": seed,
        },
    )
    return out, last_h, last_c


@layer(fluid_accepts={"input h_0": "float32 float64"})
def dynamic_gru(
    input: Variable,
    size: int,
    param_attr: ParamAttr | None = None,
    bias_attr: ParamAttr | bool | None = None,
    is_reverse: bool = False,
    gate_activation: str = "sigmoid",
    candidate_activation: str = "tanh",
    h_0: Variable | None = None,
    origin_mode: bool = False,
) -> Variable:
    """Runs a gated recurrent unit over each sequence.

    The input holds the terms of the two gates and the candidate for each row; a fully connected layer of 3 * size
    columns computes it.

    Args:
        input (Variable): shape [rows, 3 * size] with sequences.
        size (int): width of the hidden state.
        param_attr (ParamAttr | None): the weights, of shape [size, 3 * size].
        bias_attr (ParamAttr | bool | None): the bias, of shape [1, 3 * size]; False: no bias.
        h_0 (Variable | None): the initial hidden state, shape [sequences, size]; None: zeros.
        origin_mode (bool): True: h = u * h_before + (1 - u) * candidate, as in the paper; False: u and 1 - u exchanged.

    Returns:
        Variable: the hidden states, shape [rows, size] with the sequences of `input`, same type as `input`.

    Example:
        x = fluid.data('x', [None, 8], lod_level=1)
        hidden = fluid.layers.dynamic_gru(fluid.layers.fc(x, size=12), size=4)

    Reference:
        Cho et al., Learning Phrase Representations using RNN Encoder-Decoder, EMNLP 2014.
    """
    helper = LayerHelper("gru", param_attr=param_attr, bias_attr=bias_attr).takes(input=input)
    dtype = input.dtype
    inputs = {"Input": input, "Weight": helper.create_parameter(helper.param_attr, [size, 3 * size], dtype)}
    if helper.bias_attr:
        inputs["Bias"] = helper.create_parameter(helper.bias_attr, [1, 3 * size], dtype, is_bias=True)
    if h_0 is not None:
        inputs["H0"] = h_0
    slots = ("Hidden", "BatchGate", "BatchResetHiddenPrev", "BatchHidden")
    outputs = {slot: helper.create_variable_for_type_inference(dtype) for slot in slots}
    helper.append_op(
        "gru",
        inputs,
        outputs,
        {
            "is_reverse": is_reverse,
            "gate_activation": gate_activation,
            "activation": candidate_activation,
            "origin_mode": origin_mode,
        },
    )
    return outputs["Hidden"]
