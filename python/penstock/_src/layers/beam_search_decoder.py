"""BeamSearchDecoder: keeps the best branches of each sequence, step by step."""

from __future__ import annotations

from collections import namedtuple
from typing import TYPE_CHECKING

import numpy

from penstock._src.layers import creation, nn, reshaping, slicing, tensor, unary
from penstock._src.layers.arithmetic import (
    elementwise_add,
    elementwise_floordiv,
    elementwise_mod,
    elementwise_mul,
    logical_not,
    logical_or,
)
from penstock._src.layers.beam_search_ops import gather_tree
from penstock._src.layers.comparison import equal
from penstock._src.layers.creation import zeros_like
from penstock._src.layers.decoders import Decoder
from penstock._src.layers.helper import require_variables
from penstock._src.layers.indexing import gather_nd
from penstock._src.layers.nest import flatten, map_structure

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from penstock._src.ir.variable import Variable
    from penstock._src.layers.rnn_cells import RNNCell


def _tiled(x: Variable, times: int) -> Variable:
    """Returns x with a second axis of copies."""
    x = reshaping.unsqueeze(x, [1])
    return slicing.expand(x, [1, times] + [1] * (len(x.shape) - 2))


class BeamSearchDecoder(Decoder):
    """Decodes by a beam search over the outputs of a cell.

    Inputs and states of the cell have beam_size rows for each sequence. Other tensors that the cell uses need the same
    number of rows, which `tile_beam_merge_with_batch` makes.

    Args:
        cell (RNNCell): computes an output and the next state.
        start_token (int): the first token of each sequence.
        end_token (int): the token that ends a sequence.
        beam_size (int): the number of branches that are kept.
        embedding_fn (callable): converts tokens to the cell's inputs; None: the tokens are the inputs.
        output_fn (callable): converts the cell's output to the scores of all tokens; None: the output is the scores.

    Example:
        cell = fluid.layers.GRUCell(hidden_size=8)
        decoder = fluid.layers.BeamSearchDecoder(
            cell, start_token=0, end_token=1, beam_size=4,
            embedding_fn=lambda ids: fluid.embedding(ids, [20, 8], param_attr='words'),
            output_fn=lambda out: fluid.layers.fc(out, 20, num_flatten_dims=2))
        sentences, states = fluid.layers.dynamic_decode(decoder, fluid.data('h', [None, 8]), max_step_num=10)
    """

    OutputWrapper = namedtuple("OutputWrapper", ("scores", "predicted_ids", "parent_ids"))
    StateWrapper = namedtuple("StateWrapper", ("cell_states", "log_probs", "finished", "lengths"))

    def __init__(
        self,
        cell: RNNCell,
        start_token: int,
        end_token: int,
        beam_size: int,
        embedding_fn: Callable[..., Any] | None = None,
        output_fn: Callable[..., Any] | None = None,
    ) -> None:
        self.cell = cell
        self.embedding_fn = embedding_fn
        self.output_fn = output_fn
        self.start_token = start_token
        self.end_token = end_token
        self.beam_size = beam_size

    @staticmethod
    def tile_beam_merge_with_batch(x: Variable, beam_size: int) -> Variable:
        """Repeats each row for the branches of its beam.

        Args:
            x (Variable): shape [sequences, ...], any type.
            beam_size (int): the number of copies of each row.

        Returns:
            Variable: shape [sequences * beam_size, ...], same type as `x`; the copies of a row are adjacent.

        Raises:
            TypeError: `x` is not a Variable.

        Example:
            rows = fluid.data('rows', [None, 7, 8])
            tiled = fluid.layers.BeamSearchDecoder.tile_beam_merge_with_batch(rows, beam_size=4)
        """
        require_variables("BeamSearchDecoder.tile_beam_merge_with_batch", x=x)
        x = _tiled(x, beam_size)
        x = reshaping.transpose(x, list(range(2, len(x.shape))) + [0, 1])
        x = reshaping.reshape(x, [0] * (len(x.shape) - 2) + [-1])
        return reshaping.transpose(x, [len(x.shape) - 1] + list(range(len(x.shape) - 1)))

    def _split_batch_beams(self, x: Variable) -> Variable:
        return reshaping.reshape(x, (-1, self.beam_size) + tuple(x.shape[1:]))

    def _merge_batch_beams(self, x: Variable) -> Variable:
        return reshaping.reshape(x, (-1,) + tuple(x.shape[2:]))

    def _expand_to_beam_size(self, x: Variable) -> Variable:
        return _tiled(x, self.beam_size)

    def _mask_probs(self, probs: Variable, finished: Variable) -> Variable:
        """Masks scores so that finished branches can only continue with the end token, at no cost."""
        finished = tensor.cast(finished, probs.dtype)
        ended = elementwise_mul(
            slicing.expand(reshaping.unsqueeze(finished, [2]), [1, 1, self.vocab_size]), self.noend_mask_tensor, axis=-1
        )
        return ended - elementwise_mul(probs, finished - 1, axis=0)

    def _gather(self, x: Variable, indices: Variable, batch_size: Variable) -> Variable:
        """Returns, for each sequence, the rows of x at its indices."""
        if batch_size.dtype != indices.dtype:
            batch_size = tensor.cast(batch_size, indices.dtype)
        batch_size.stop_gradient = True
        sequences = reshaping.unsqueeze(tensor.range(0, batch_size, 1, indices.dtype), [1])
        places = slicing.stack([slicing.expand(sequences, [1, self.beam_size]), indices], axis=2)
        places.stop_gradient = True
        return gather_nd(x, places)

    def initialize(self, initial_cell_states: Variable) -> tuple[Any, ...]:
        """Returns the input of the first step: the start token, for which only the first branch is possible.

        Args:
            initial_cell_states (Variable): shape [sequences, ...], or a structure of Variables.

        Returns:
            tuple: (inputs, states, finished): the cell's inputs, a `StateWrapper`, and a bool Variable of shape
            [sequences, beam_size].

        Example:
            cell = fluid.layers.GRUCell(8)
            decoder = fluid.layers.BeamSearchDecoder(cell, start_token=0, end_token=1, beam_size=2)
            inputs, states, finished = decoder.initialize(fluid.data('h', [None, 8]))
        """
        self.kinf = 1e9
        state = flatten(initial_cell_states)[0]
        self.batch_size = slicing.shape(state)[0]
        self.start_token_tensor = tensor.fill_constant([1], "int64", self.start_token)
        self.end_token_tensor = tensor.fill_constant([1], "int64", self.end_token)
        cell_states = map_structure(self._expand_to_beam_size, initial_cell_states)
        tokens = reshaping.unsqueeze(slicing.expand(self.start_token_tensor, [self.batch_size]), [1])
        inputs = slicing.expand(tokens, [1, self.beam_size])
        first = numpy.array([[0.0] + [-self.kinf] * (self.beam_size - 1)], "float32")
        log_probs = slicing.expand(tensor.assign(first), [self.batch_size, 1])
        finished = creation.fill_constant_batch_size_like(state, [-1, self.beam_size], "bool", False, force_cpu=True)
        lengths = zeros_like(inputs)
        if self.embedding_fn:
            inputs = self.embedding_fn(inputs)
        return inputs, self.StateWrapper(cell_states, log_probs, finished, lengths), finished

    def _beam_search_step(
        self, time: Variable, logits: Variable, next_cell_states: Any, beam_state: Any
    ) -> tuple[Any, Any]:
        self.vocab_size = logits.shape[-1]
        self.vocab_size_tensor = tensor.fill_constant([1], "int64", self.vocab_size)
        only_end = numpy.full(self.vocab_size, -self.kinf, "float32")
        only_end[self.end_token] = 0
        self.noend_mask_tensor = tensor.assign(only_end)
        step_log_probs = self._mask_probs(unary.log(nn.softmax(logits)), beam_state.finished)
        log_probs = elementwise_add(step_log_probs, beam_state.log_probs, axis=0)
        scores = reshaping.reshape(log_probs, [-1, self.beam_size * self.vocab_size])
        best_scores, best = nn.topk(scores, self.beam_size)
        beams = elementwise_floordiv(best, self.vocab_size_tensor)
        tokens = elementwise_mod(best, self.vocab_size_tensor)
        next_log_probs = self._gather(
            reshaping.reshape(log_probs, [-1, self.beam_size * self.vocab_size]), best, self.batch_size
        )
        next_cell_states = map_structure(lambda x: self._gather(x, beams, self.batch_size), next_cell_states)
        finished = self._gather(beam_state.finished, beams, self.batch_size)
        lengths = self._gather(beam_state.lengths, beams, self.batch_size)
        lengths = lengths + tensor.cast(logical_not(finished), beam_state.lengths.dtype)
        finished = logical_or(finished, equal(tokens, self.end_token_tensor))
        return (
            self.OutputWrapper(best_scores, tokens, beams),
            self.StateWrapper(next_cell_states, next_log_probs, finished, lengths),
        )

    def step(self, time: Variable, inputs: Variable, states: Any, **kwargs: Any) -> tuple[Any, ...]:
        """Runs a step of the cell, and keeps the best continuations of each sequence's branches.

        Args:
            time (Variable): the number of the step, int64, shape [1].
            inputs (Variable): the cell's inputs, shape [sequences, beam_size, ...].
            states (StateWrapper): the states after the previous step.
            **kwargs (object): passed to the cell.

        Returns:
            tuple: (output, next states, next inputs, finished): an `OutputWrapper` of scores, tokens and the branches
            that they continue, a `StateWrapper`, and a bool Variable, each of shape [sequences, beam_size].

        Example:
            cell = fluid.layers.GRUCell(8)
            decoder = fluid.layers.BeamSearchDecoder(cell, 0, 1, beam_size=2,
                                                     embedding_fn=lambda ids: fluid.embedding(ids, [8, 8]))
            inputs, states, finished = decoder.initialize(fluid.data('h', [None, 8]))
            time = fluid.layers.fill_constant([1], 'int64', 0)
            output, states, inputs, finished = decoder.step(time, inputs, states)
        """
        inputs = map_structure(self._merge_batch_beams, inputs)
        cell_states = map_structure(self._merge_batch_beams, states.cell_states)
        outputs, next_cell_states = self.cell(inputs, cell_states, **kwargs)
        outputs = map_structure(self._split_batch_beams, outputs)
        next_cell_states = map_structure(self._split_batch_beams, next_cell_states)
        if self.output_fn is not None:
            outputs = self.output_fn(outputs)
        found, next_states = self._beam_search_step(time, outputs, next_cell_states, states)
        tokens = found.predicted_ids
        tokens.stop_gradient = True
        next_inputs = self.embedding_fn(tokens) if self.embedding_fn else tokens
        return found, next_states, next_inputs, next_states.finished

    def finalize(self, outputs: Any, final_states: Any, sequence_lengths: Variable) -> tuple[Any, ...]:
        """Follows the branches of the last step back to the first step.

        Args:
            outputs (OutputWrapper): the outputs of all steps, each of shape [steps, sequences, beam_size].
            final_states (StateWrapper): the states after the last step.
            sequence_lengths (Variable): not used.

        Returns:
            tuple: (tokens, final_states), where `tokens` holds the complete branches, int64, shape [steps, sequences,
            beam_size].

        Example:
            decoder = fluid.layers.BeamSearchDecoder(fluid.layers.GRUCell(8), 0, 1, beam_size=2)
            ids, parents = (fluid.data(name, [None, 3, 2], 'int64') for name in ('ids', 'parents'))
            outputs = decoder.OutputWrapper(None, ids, parents)
            sentences, _ = decoder.finalize(outputs, None, None)
        """
        return gather_tree(outputs.predicted_ids, outputs.parent_ids), final_states
