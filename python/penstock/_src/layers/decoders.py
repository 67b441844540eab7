"""Decoders, which generate a sequence step by step, each from the previous output; dynamic_decode() runs one."""

from __future__ import annotations

from collections import namedtuple
from typing import TYPE_CHECKING, Any

from penstock._src.ir.framework import default_main_program
from penstock._src.ir.types import VarType
from penstock._src.layers import tensor, tensor_array
from penstock._src.layers.arithmetic import (
    elementwise_add,
    elementwise_mul,
    logical_and,
    logical_not,
    logical_or,
    reduce_all,
)
from penstock._src.layers.comparison import increment, less_equal
from penstock._src.layers.creation import zeros_like
from penstock._src.layers.loops import While
from penstock._src.layers.nest import flatten, map_structure
from penstock._src.layers.rnn import transposed

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from penstock._src.ir.variable import Variable
    from penstock._src.layers.decode_helpers import DecodeHelper
    from penstock._src.layers.rnn_cells import RNNCell


class Decoder:
    """Base of decoders, which `dynamic_decode` runs.

    A subclass defines `initialize` and `step`, and `finalize` if it changes the outputs of all steps at the end.

    Example:
        class Count(fluid.layers.Decoder):
            def initialize(self, inits):
                return inits, inits, fluid.layers.cast(inits * 0, 'bool')

            def step(self, time, inputs, states, **kwargs):
                more = states + 1
                return more, more, more, more > 3

        start = fluid.data('start', [2])
        counts, last = fluid.layers.dynamic_decode(Count(), start)
    """

    def initialize(self, inits: Any) -> tuple[Any, ...]:
        """Returns the input of the first step; subclasses define it.

        Args:
            inits (object): the argument `inits` of `dynamic_decode`.

        Returns:
            tuple: (input, state, finished): structures of Variables, and a bool Variable.

        Raises:
            NotImplementedError: the class does not override it.

        Example:
            cell = fluid.layers.GRUCell(8)
            decoder = fluid.layers.BeamSearchDecoder(cell, start_token=0, end_token=1, beam_size=2)
            inputs, states, finished = decoder.initialize(fluid.data('h', [None, 8]))
        """
        raise NotImplementedError(f"{type(self).__name__} does not define initialize(inits)")

    def step(self, time: Variable, inputs: Variable, states: Variable, **kwargs: Any) -> tuple[Any, ...]:
        """Runs a step; subclasses define it.

        Args:
            time (Variable): the number of the step, int64, shape [1].
            inputs (Variable): the inputs that the previous step returned, or a structure of Variables.
            states (Variable): the states that the previous step returned, or a structure of Variables.
            **kwargs (object): further arguments of `dynamic_decode`.

        Returns:
            tuple: (output, next state, next input, finished).

        Raises:
            NotImplementedError: the class does not override it.

        Example:
            x, h = fluid.data('x', [None, None, 4]), fluid.data('h', [None, 8])
            decoder = fluid.layers.BasicDecoder(fluid.layers.GRUCell(8),
                                                fluid.layers.TrainingHelper(x, fluid.data('n', [None], 'int32')))
            time = fluid.layers.fill_constant([1], 'int64', 0)
            output, state, inputs, finished = decoder.step(time, x[:, 0], h)
        """
        raise NotImplementedError(f"{type(self).__name__} does not define step(time, inputs, states)")

    def finalize(self, outputs: Variable, final_states: Variable, sequence_lengths: Variable) -> tuple[Any, ...]:
        """Changes the outputs of all steps at the end; subclasses may define it.

        Args:
            outputs (Variable): shape [steps, ...], in the structure of a step's output.
            final_states (Variable): the states after the last step, or a structure of Variables.
            sequence_lengths (Variable): the number of steps of each sequence, int64.

        Returns:
            tuple: (outputs, final states).

        Raises:
            NotImplementedError: the class does not override it.

        Example:
            class Last(fluid.layers.BeamSearchDecoder):
                def finalize(self, outputs, final_states, sequence_lengths):
                    return outputs.predicted_ids, final_states
        """
        raise NotImplementedError(f"{type(self).__name__} does not define finalize")


class BasicDecoder(Decoder):
    """Decodes with a cell and a helper, which samples tokens and selects the next inputs.

    Args:
        cell (RNNCell): computes an output and the next state.
        helper (DecodeHelper): samples, and selects the next input.
        output_fn (callable): applied to the cell's output before sampling; None: the output is used directly.

    Example:
        x, length = fluid.data('x', [None, None, 4]), fluid.data('length', [None], 'int32')
        cell = fluid.layers.GRUCell(8)
        decoder = fluid.layers.BasicDecoder(cell, fluid.layers.TrainingHelper(x, length),
                                            output_fn=lambda out: fluid.layers.fc(out, 20))
        (scores, tokens), last = fluid.layers.dynamic_decode(decoder, cell.get_initial_states(x))
    """

    OutputWrapper = namedtuple("OutputWrapper", ("cell_outputs", "sample_ids"))

    def __init__(self, cell: RNNCell, helper: DecodeHelper, output_fn: Callable[..., Any] | None = None) -> None:
        self.cell = cell
        self.helper = helper
        self.output_fn = output_fn

    def initialize(self, initial_cell_states: Variable) -> tuple[Any, ...]:
        """Returns the input of the first step, from the helper.

        Args:
            initial_cell_states (Variable): the initial states of the cell, or a structure of Variables.

        Returns:
            tuple: (inputs, initial_cell_states, finished).

        Example:
            x, length = fluid.data('x', [None, None, 4]), fluid.data('length', [None], 'int32')
            decoder = fluid.layers.BasicDecoder(fluid.layers.GRUCell(8), fluid.layers.TrainingHelper(x, length))
            inputs, states, finished = decoder.initialize(fluid.data('h', [None, 8]))
        """
        inputs, finished = self.helper.initialize()
        return inputs, initial_cell_states, finished

    def step(self, time: Variable, inputs: Variable, states: Variable, **kwargs: Any) -> tuple[Any, ...]:
        """Runs a step of the cell, samples, and gets the next input from the helper.

        Args:
            time (Variable): the number of the step, int64, shape [1].
            inputs (Variable): the inputs of the cell, or a structure of Variables.
            states (Variable): the states of the previous step, or a structure of Variables.
            **kwargs (object): passed to the cell.

        Returns:
            tuple: (output, next states, next inputs, finished): an `OutputWrapper` of the cell's output and the
            samples; finished is a bool Variable of shape [sequences].

        Example:
            x, length = fluid.data('x', [None, None, 4]), fluid.data('length', [None], 'int32')
            decoder = fluid.layers.BasicDecoder(fluid.layers.GRUCell(8), fluid.layers.TrainingHelper(x, length))
            time = fluid.layers.fill_constant([1], 'int64', 0)
            output, states, inputs, finished = decoder.step(time, x[:, 0], fluid.data('h', [None, 8]))
        """
        outputs, states = self.cell(inputs, states, **kwargs)
        if self.output_fn is not None:
            outputs = self.output_fn(outputs)
        samples = self.helper.sample(time=time, outputs=outputs, states=states)
        samples.stop_gradient = True
        finished, next_inputs, next_states = self.helper.next_inputs(
            time=time, outputs=outputs, states=states, sample_ids=samples
        )
        return self.OutputWrapper(outputs, samples), next_states, next_inputs, finished


def dynamic_decode(
    decoder: Decoder,
    inits: Any = None,
    max_step_num: int | None = None,
    output_time_major: bool = False,
    impute_finished: bool = False,
    is_test: bool = False,
    return_length: bool = False,
    **kwargs: Any,
) -> tuple[Any, ...]:
    """Runs a decoder until all sequences are finished.

    Args:
        decoder (Decoder): computes the steps.
        inits (object): passed to `decoder.initialize`.
        max_step_num (int): the number, counted from 0, of the last step that may run; None: no limit.
        output_time_major (bool): whether outputs are [steps, sequences, ...].
        impute_finished (bool): whether the states of a finished sequence stay unchanged.
        is_test (bool): whether to keep only the last state, in which case there is no gradient.
        return_length (bool): whether the lengths of the sequences are returned too.
        **kwargs (object): passed to `decoder.step`.

    Returns:
        tuple: (outputs, last states), or (outputs, last states, lengths) with `return_length`. Outputs have shape
        [sequences, steps, ...] and the structure that `decoder.step` or `decoder.finalize` returns; lengths are int64.

    Example:
        x, length = fluid.data('x', [None, None, 4]), fluid.data('length', [None], 'int32')
        cell = fluid.layers.GRUCell(8)
        decoder = fluid.layers.BasicDecoder(cell, fluid.layers.TrainingHelper(x, length))
        (outputs, tokens), last = fluid.layers.dynamic_decode(decoder, cell.get_initial_states(x))
    """
    run = _Decoding(decoder, inits, max_step_num, is_test)
    with run.loop.block():
        run.step(impute_finished, kwargs)
    outputs = map_structure(
        lambda array: tensor_array.tensor_array_to_tensor(array, axis=0, use_stack=True)[0], run.output_arrays
    )
    states = run.last_states()
    try:
        outputs, states = decoder.finalize(outputs, states, run.lengths)
    except NotImplementedError:
        pass
    if not output_time_major:
        outputs = map_structure(transposed, outputs)
    return (outputs, states, run.lengths) if return_length else (outputs, states)


class _Decoding:
    """The loop of dynamic_decode and its state: single variables in test mode, otherwise arrays of all steps for the
    gradient."""

    def __init__(self, decoder: Decoder, inits: Any, max_step_num: int | None, is_test: bool) -> None:
        self.decoder, self.is_test = decoder, is_test
        self.inputs, self.states, self.finished = decoder.initialize(inits)
        if is_test and any(state is self.finished for state in flatten(self.states)):
            # The flags in the state of a beam follow its branches; self.finished belongs to positions in the beam.
            # Fluid keeps both in one variable, so a position where a branch once ended continues with the end token
            # only.
            self.finished = tensor.assign(self.finished)
        self.finished.stop_gradient = True
        self.at = tensor.fill_constant([1], "int64", 0)
        self.goes_on = logical_not(reduce_all(self.finished))
        self.last = None if max_step_num is None else tensor.fill_constant([1], "int64", max_step_num)
        self.loop = While(self.goes_on, is_test=is_test)
        self.lengths = tensor.cast(zeros_like(self.finished), "int64")
        self.lengths.stop_gradient = True
        if not is_test:
            self.input_arrays = map_structure(self._first_of_array, self.inputs)
            self.state_arrays = map_structure(self._first_of_array, self.states)

    def _first_of_array(self, x: Variable) -> Variable:
        return tensor_array.array_write(x, self.at)

    def _write(self, x: Variable, array: Variable) -> Variable:
        return tensor_array.array_write(x, i=self.at, array=array)

    def step(self, impute_finished: bool, kwargs: Mapping[str, Any]) -> None:
        """Adds the ops of a step inside the loop's block."""
        inputs, states = self.inputs, self.states
        if not self.is_test:
            inputs = map_structure(lambda array: tensor_array.array_read(array, self.at), self.input_arrays)
            states = map_structure(lambda array: tensor_array.array_read(array, self.at), self.state_arrays)
        outputs, next_states, next_inputs, finished = self.decoder.step(self.at, inputs, states, **kwargs)
        finished = logical_or(finished, self.finished)
        lengths = elementwise_add(self.lengths, tensor.cast(logical_not(self.finished), self.lengths.dtype))
        if impute_finished:
            next_states = map_structure(lambda old, new: _keep(old, new, self.finished), states, next_states)
        # The types of the outputs are known only now.
        self.output_arrays = map_structure(lambda x: _array_around(x.dtype), outputs)
        map_structure(self._write, outputs, self.output_arrays)
        increment(self.at, value=1.0, in_place=True)
        if self.is_test:
            map_structure(tensor.assign, next_inputs, self.inputs)
            map_structure(tensor.assign, next_states, self.states)
        else:
            map_structure(self._write, next_inputs, self.input_arrays)
            map_structure(self._write, next_states, self.state_arrays)
        tensor.assign(finished, self.finished)
        tensor.assign(lengths, self.lengths)
        if self.last is None:
            logical_not(reduce_all(self.finished), self.goes_on)
        else:
            logical_and(logical_not(reduce_all(self.finished)), less_equal(self.at, self.last), self.goes_on)

    def last_states(self) -> Any:
        if self.is_test:
            return self.states
        return map_structure(lambda array: tensor_array.array_read(array, self.at), self.state_arrays)


def _array_around(dtype: VarType) -> Variable:
    """Creates an array in the block around the current one."""
    program = default_main_program()
    inside = program.current_block_idx
    program.current_block_idx = program.current_block().parent_idx
    try:
        return tensor_array.create_array(dtype)
    finally:
        program.current_block_idx = inside


def _keep(state: Variable, new_state: Variable, finished: Variable) -> Variable:
    """Returns the old state for finished sequences, and the new one for the others."""
    dtype = state.dtype
    if dtype == VarType.BOOL:
        state, new_state = tensor.cast(state, "float32"), tensor.cast(new_state, "float32")
    if finished.dtype != state.dtype:
        finished = tensor.cast(finished, state.dtype)
        finished.stop_gradient = True
    kept = elementwise_mul(state, finished, axis=0) - elementwise_mul(new_state, finished - 1, axis=0)
    return tensor.cast(kept, dtype) if dtype == VarType.BOOL else kept
