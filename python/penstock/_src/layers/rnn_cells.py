"""Cells, which compute one step of a recurrent network; rnn() runs one over padded sequences."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from penstock._src.base.argument_texts import GRU, LSTM
from penstock._src.base.doc_texts import with_texts
from penstock._src.ir.argument_types import require_types, types_of
from penstock._src.ir.types import to_dtype
from penstock._src.ir.variable import Variable
from penstock._src.layers import creation
from penstock._src.layers.helper import require_kind, require_variables
from penstock._src.layers.nest import flatten, map_structure
from penstock._src.layers.rnn_units import BasicGRUUnit, BasicLSTMUnit
from penstock._src.parameters.param_attr import ParamAttr

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any


_FLOATS = types_of("float32 float64")


def _map_shapes(func: Callable[[list[int]], Any], shape: Any) -> Any:
    """Calls func(shape) for each shape in a structure of shapes, which are lists or tuples of ints."""
    if isinstance(shape, dict):
        return {key: _map_shapes(func, one) for key, one in shape.items()}
    if all(isinstance(extent, int) for extent in shape):
        return func(list(shape))
    parts = [_map_shapes(func, one) for one in shape]
    return type(shape)(*parts) if hasattr(shape, "_fields") else type(shape)(parts)


class _Shape:
    """Wraps a shape, so that map_structure treats it as one value. The first extent is always -1, for the sequences."""

    def __init__(self, extents: list[int]) -> None:
        self.extents = extents if extents[:1] == [-1] else [-1] + extents


class RNNCell:
    """Base class of cells, which map an input and a state to an output and the next state.

    A subclass defines `call`, and `state_shape` if `get_initial_states` is called without a shape. Inputs and states
    may be nested lists, tuples and dicts of Variables.

    Example:
        class Sum(fluid.layers.RNNCell):
            state_shape = [4]

            def call(self, inputs, states):
                return inputs + states, inputs + states

        sums, last = fluid.layers.rnn(Sum(), fluid.data('x', [None, 7, 4]))
    """

    def call(self, inputs: Variable, states: Variable, **kwargs: Any) -> tuple[Any, ...]:
        """Computes a step; subclasses define it.

        Args:
            inputs (Variable): the inputs of the step, or a structure of Variables.
            states (Variable): the states after the previous step, or a structure of Variables.
            **kwargs (object): further arguments of `rnn` or `dynamic_decode`.

        Returns:
            tuple: (output, next states), the latter in the structure of `states`.

        Raises:
            NotImplementedError: the subclass does not define `call`.

        Example:
            cell = fluid.layers.GRUCell(hidden_size=8)
            out, state = cell.call(fluid.data('x', [None, 4]), fluid.data('h', [None, 8]))
        """
        raise NotImplementedError(f"{type(self).__name__} does not define call(inputs, states)")

    def __call__(self, inputs: Any, states: Any, **kwargs: Any) -> Any:
        return self.call(inputs, states, **kwargs)

    def get_initial_states(
        self,
        batch_ref: Variable,
        shape: Sequence[int] | None = None,
        dtype: str = "float32",
        init_value: float = 0,
        batch_dim_idx: int = 0,
    ) -> Variable:
        """Creates states filled with one number.

        Args:
            batch_ref (Variable): the tensor whose extent `batch_dim_idx` is the number of sequences, or a structure of
                Variables, of which the first counts.
            shape (list[int]): shape of a state, with or without a leading -1 for the sequences, or a structure of
                shapes; None: `state_shape`.
            dtype (str): type of the states, or a structure of types; None: `state_dtype`, or 'float32' if the cell has
                none.
            init_value (float): the number.
            batch_dim_idx (int): the axis of `batch_ref` that holds the sequences.

        Returns:
            Variable: the state, shape [sequences, *shape], or a structure of Variables in the form of `shape`.

        Raises:
            TypeError: `batch_ref` is not a Variable.
            NotImplementedError: `shape` is None and the cell does not define `state_shape`.

        Example:
            cell = fluid.layers.LSTMCell(hidden_size=8)
            hidden, c = cell.get_initial_states(fluid.data('x', [None, 4]))
        """
        reference = flatten(batch_ref)[0]
        require_variables("RNNCell", batch_ref=reference)
        shapes = _map_shapes(_Shape, self.state_shape if shape is None else shape)
        if dtype is None:
            try:
                dtype = self.state_dtype
            except NotImplementedError:
                dtype = "float32"
        if len(flatten(dtype)) == 1:
            only = flatten(dtype)[0]
            dtype = map_structure(lambda _: only, shapes)
        states: Variable = map_structure(
            lambda shape, dtype: creation.fill_constant_batch_size_like(
                reference, shape.extents, to_dtype(dtype), init_value, input_dim_idx=batch_dim_idx
            ),
            shapes,
            dtype,
        )
        return states

    @property
    def state_shape(self) -> Any:
        """The shape of the state without the sequences' axis, or a structure of shapes.

        Returns:
            list: extents, or a structure of such lists.

        Raises:
            NotImplementedError: the subclass does not define `state_shape`.

        Example:
            assert fluid.layers.GRUCell(hidden_size=8).state_shape == [8]
        """
        raise NotImplementedError(f"{type(self).__name__} does not define state_shape")

    @property
    def state_dtype(self) -> Any:
        """The type of the state, or a structure of types.

        Returns:
            str: such as 'float32', or a structure of types.

        Raises:
            NotImplementedError: the subclass does not define `state_dtype`.

        Example:
            class Half(fluid.layers.GRUCell):
                state_dtype = 'float64'
        """
        raise NotImplementedError(f"{type(self).__name__} does not define state_dtype")


@with_texts(GRU)
class GRUCell(RNNCell):
    """Computes one step of a gated recurrent unit (GRU).

        {step}

    Raises:
        TypeError: `hidden_size` is not an int, or `dtype` is not a floating-point type.

    Example:
        cell = fluid.layers.GRUCell(hidden_size=8)
        outputs, last = fluid.layers.rnn(cell, fluid.data('x', [None, 7, 4]))

    Reference:
        K. Cho et al.: "Learning Phrase Representations using RNN Encoder-Decoder", EMNLP 2014.
    """

    def __init__(
        self,
        hidden_size: int,
        param_attr: ParamAttr | None = None,
        bias_attr: ParamAttr | bool | None = None,
        gate_activation: Callable[..., Variable] | None = None,
        activation: Callable[..., Variable] | None = None,
        dtype: str = "float32",
        name: str = "GRUCell",
    ) -> None:
        require_kind("GRUCell", int, hidden_size=hidden_size)
        require_types("GRUCell", "dtype", dtype, _FLOATS)
        self.hidden_size = hidden_size
        self.gru_unit = BasicGRUUnit(name, hidden_size, param_attr, bias_attr, gate_activation, activation, dtype)

    def call(self, inputs: Variable, states: Variable) -> tuple[Any, ...]:  # type: ignore[override]  # as in Fluid
        """Computes a step.

        Args:
            inputs (Variable): shape [N, width], float32 or float64.
            states (Variable): the hidden state, shape [N, hidden_size], same type as `inputs`.

        Returns:
            tuple: (output, next state), both the next hidden state, shape [N, hidden_size].

        Raises:
            TypeError: `inputs` or `states` is not a Variable, or has an unsupported element type.
            ValueError: the width of `inputs` is unknown in the first call.

        Example:
            cell = fluid.layers.GRUCell(hidden_size=8)
            out, state = cell.call(fluid.data('x', [None, 4]), fluid.data('h', [None, 8]))
        """
        require_variables("GRUCell", inputs=inputs, states=states)
        require_types("GRUCell", "inputs", inputs, _FLOATS)
        require_types("GRUCell", "states", states, _FLOATS)
        hidden = self.gru_unit(inputs, states)
        return hidden, hidden

    @property
    def state_shape(self) -> list[int]:
        """The shape of the hidden state without the sequences' axis.

        Returns:
            list: [hidden_size].

        Example:
            assert fluid.layers.GRUCell(hidden_size=8).state_shape == [8]
        """
        return [self.hidden_size]


@with_texts(LSTM)
class LSTMCell(RNNCell):
    """Computes one step of a long short-term memory (LSTM).

        {step}

    Raises:
        TypeError: `hidden_size` is not an int, or `dtype` is not a floating-point type.

    Example:
        cell = fluid.layers.LSTMCell(hidden_size=8)
        outputs, (hidden, c) = fluid.layers.rnn(cell, fluid.data('x', [None, 7, 4]))

    Reference:
        W. Zaremba, I. Sutskever, O. Vinyals: "Recurrent Neural Network Regularization", 2014.
    """

    def __init__(
        self,
        hidden_size: int,
        param_attr: ParamAttr | None = None,
        bias_attr: ParamAttr | bool | None = None,
        gate_activation: Callable[..., Variable] | None = None,
        activation: Callable[..., Variable] | None = None,
        forget_bias: float = 1.0,
        dtype: str = "float32",
        name: str = "LSTMCell",
    ) -> None:
        require_kind("LSTMCell", int, hidden_size=hidden_size)
        require_types("LSTMCell", "dtype", dtype, _FLOATS)
        self.hidden_size = hidden_size
        self.lstm_unit = BasicLSTMUnit(
            name, hidden_size, param_attr, bias_attr, gate_activation, activation, forget_bias, dtype
        )

    def call(self, inputs: Variable, states: Sequence[Variable]) -> tuple[Any, ...]:  # type: ignore[override]
        """Computes a step.

        Args:
            inputs (Variable): shape [N, width], float32 or float64.
            states (list[Variable]): hidden state and cell, each of shape [N, hidden_size], same type as `inputs`.

        Returns:
            tuple: (next hidden state, [next hidden state, next cell]), each of shape [N, hidden_size].

        Raises:
            TypeError: `states` is not a pair, or an argument is not a Variable or has an unsupported element type.
            ValueError: the width of `inputs` is unknown in the first call.

        Example:
            cell = fluid.layers.LSTMCell(hidden_size=8)
            out, states = cell.call(fluid.data('x', [None, 4]), cell.get_initial_states(fluid.data('y', [None, 4])))
        """
        if not isinstance(states, (list, tuple)) or len(states) != 2:
            raise TypeError(f"LSTMCell: states must be a list of hidden state and cell, not {states!r}")
        require_variables("LSTMCell", inputs=inputs, hidden=states[0], cell=states[1])
        require_types("LSTMCell", "inputs", inputs, _FLOATS)
        require_types("LSTMCell", "states", states, _FLOATS)
        hidden, cell = self.lstm_unit(inputs, *states)
        return hidden, [hidden, cell]

    @property
    def state_shape(self) -> list[list[int]]:
        """The shapes of the hidden state and the cell without the sequences' axis.

        Returns:
            list: [[hidden_size], [hidden_size]].

        Example:
            assert fluid.layers.LSTMCell(hidden_size=8).state_shape == [[8], [8]]
        """
        return [[self.hidden_size], [self.hidden_size]]
