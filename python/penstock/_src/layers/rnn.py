"""rnn(), which runs a cell over padded sequences."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from penstock._src.layers import reshaping, sequence_padding, slicing
from penstock._src.layers.arithmetic import elementwise_mul
from penstock._src.layers.helper import require_variables
from penstock._src.layers.nest import assert_same_structure, flatten, map_structure, pack_sequence_as
from penstock._src.layers.static_rnn import StaticRNN

if TYPE_CHECKING:
    from typing import Any

    from penstock._src.ir.variable import Variable
    from penstock._src.layers.rnn_cells import RNNCell


def transposed(x: Variable) -> Variable:
    """Returns x with its first two axes exchanged: steps and sequences."""
    return reshaping.transpose(x, [1, 0] + list(range(2, len(x.shape))))


def rnn(
    cell: RNNCell,
    inputs: Variable,
    initial_states: Variable | None = None,
    sequence_length: Variable | None = None,
    time_major: bool = False,
    is_reverse: bool = False,
    **kwargs: Any,
) -> tuple[Any, ...]:
    """Runs a cell over all steps of padded sequences.

    Args:
        cell (RNNCell): computes a step.
        inputs (Variable): shape [sequences, steps, ...], or a structure of Variables.
        initial_states (Variable): the states before the first step, or a structure of Variables; None: the result of
            the cell's `get_initial_states`.
        sequence_length (Variable): the number of steps of each sequence, shape [sequences], int64 or int32; the states
            of a sequence do not change after its last step. None: every sequence has all steps.
        time_major (bool): whether inputs and outputs have shape [steps, sequences, ...].
        is_reverse (bool): whether the cell runs from the last step to the first.
        **kwargs (object): passed to `cell.call`.

    Returns:
        tuple: (outputs, last states). The outputs of all steps have shape [sequences, steps, ...] and the structure of
        the cell's output; the last states have the structure of `initial_states`.

    Raises:
        TypeError: `inputs`, `initial_states` or `sequence_length` is not a Variable.
        ValueError: the cell returns states of another structure.

    Example:
        x, length = fluid.data('x', [None, 7, 4]), fluid.data('length', [None], 'int64')
        outputs, last = fluid.layers.rnn(fluid.layers.GRUCell(8), x, sequence_length=length)
    """
    for value in flatten(inputs):
        require_variables("rnn", inputs=value)
    if sequence_length is not None:
        require_variables("rnn", sequence_length=sequence_length)
    if initial_states is None:
        initial_states = cell.get_initial_states(inputs, batch_dim_idx=1 if time_major else 0)
    initial_states = map_structure(_with_gradient, initial_states)
    if not time_major:
        inputs = map_structure(transposed, inputs)
    mask = None
    if sequence_length is not None:
        steps = slicing.shape(flatten(inputs)[0])[0]
        mask = sequence_padding.sequence_mask(sequence_length, steps, flatten(initial_states)[0].dtype)
        mask = reshaping.transpose(mask, [1, 0])
    if is_reverse:
        inputs = map_structure(_backwards, inputs)
        mask = mask if mask is None else _backwards(mask)
    outputs, states = _run_steps(cell, inputs, initial_states, mask, kwargs)
    if is_reverse:
        outputs = map_structure(_backwards, outputs)
    if not time_major:
        outputs = map_structure(transposed, outputs)
    return outputs, states


def _run_steps(
    cell: RNNCell, inputs: Any, initial_states: Any, mask: Variable | None, kwargs: dict[str, Any]
) -> tuple[Any, Any]:
    """Returns (outputs of all steps, states after the last step)."""
    network = StaticRNN()
    with network.step():
        row = map_structure(network.step_input, inputs)
        states = map_structure(network.memory, initial_states)
        outputs, new_states = cell.call(row, map_structure(lambda state: state, states), **kwargs)
        assert_same_structure(states, new_states)
        if mask is not None:
            goes_on = network.step_input(mask)
            new_states = map_structure(partial(_choose, goes_on), states, new_states)
        map_structure(network.update_memory, states, new_states)
        map_structure(network.step_output, outputs)
        map_structure(network.step_output, new_states)
    made = network()
    count = len(flatten(outputs))
    last = [var[-1] for var in made[count:]]
    return pack_sequence_as(outputs, made[:count]), pack_sequence_as(new_states, last)


def _with_gradient(state: Variable) -> Variable:
    require_variables("rnn", initial_states=state)
    state.stop_gradient = False
    return state


def _backwards(x: Variable) -> Variable:
    return slicing.reverse(x, axis=[0])


def _choose(goes_on: Variable, state: Variable, new_state: Variable) -> Variable:
    """Returns the new state for sequences that continue, and the old state for the others."""
    return elementwise_mul(new_state, goes_on, axis=0) - elementwise_mul(state, goes_on - 1, axis=0)
