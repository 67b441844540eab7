"""Helpers of BasicDecoder: they select the token of a step and the input of the next one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock._src.base.doc_texts import with_texts
from penstock._src.ir.types import VarType
from penstock._src.layers import creation, nn, reshaping, search, slicing, tensor
from penstock._src.layers.comparison import equal, less_equal
from penstock._src.layers.nest import map_structure
from penstock._src.layers.random import sampling_id

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from penstock._src.ir.variable import Variable


_STEP = {
    "time": "time (Variable): the number of the step, int64, shape [1].",
    "outputs": "outputs (Variable): the scores of all tokens, shape [sequences, tokens].",
    "states": "states (Variable): the cell's next state, or a structure of Variables.",
    "sample_ids": "sample_ids (Variable): the result of `sample`.",
}
_UNUSED = {"time": "time (Variable): not used.", "states": "states (Variable): not used."}


class DecodeHelper:
    """Base of the helpers of `BasicDecoder`; a subclass defines its three methods.

    Example:
        x, length = fluid.data('x', [None, None, 4]), fluid.data('length', [None], 'int32')
        assert isinstance(fluid.layers.TrainingHelper(x, length), fluid.layers.DecodeHelper)
    """

    def initialize(self) -> tuple[Any, ...]:  # type: ignore[empty-body]  # a subclass defines it
        """Returns the input of the first step; subclasses define it.

        Returns:
            tuple: (input, finished): a structure of Variables, and a bool Variable of shape [sequences].

        Example:
            x, length = fluid.data('x', [None, None, 4]), fluid.data('length', [None], 'int32')
            first, finished = fluid.layers.TrainingHelper(x, length).initialize()
        """

    @with_texts(_STEP)
    def sample(  # type: ignore[empty-body]  # a subclass defines it
        self, time: Variable, outputs: Variable, states: Variable
    ) -> Variable:
        """Chooses a token for each sequence; subclasses define it.

        Returns:
            Variable: the tokens, shape [sequences].

        Example:
            x, length = fluid.data('x', [None, None, 4]), fluid.data('length', [None], 'int32')
            tokens = fluid.layers.TrainingHelper(x, length).sample(None, fluid.data('scores', [None, 20]), None)
        """

    @with_texts(_STEP)
    def next_inputs(  # type: ignore[empty-body]  # a subclass defines it
        self, time: Variable, outputs: Variable, states: Variable, sample_ids: Variable
    ) -> tuple[Any, ...]:
        """Returns the input of the next step; subclasses define it.

        Returns:
            tuple: (finished, next input, next state).

        Example:
            x, length = fluid.data('x', [None, None, 4]), fluid.data('length', [None], 'int32')
            time = fluid.layers.fill_constant([1], 'int64', 0)
            finished, row, _ = fluid.layers.TrainingHelper(x, length).next_inputs(time, None, None, None)
        """


class TrainingHelper(DecodeHelper):
    """Reads the inputs of all steps from given sequences and ignores samples.

    Args:
        inputs (Variable): shape [sequences, steps, ...], or a structure of Variables.
        sequence_length (Variable): the number of steps of each sequence, shape [sequences].
        time_major (bool): whether `inputs` are [steps, sequences, ...].

    Example:
        x, length = fluid.data('x', [None, None, 4]), fluid.data('length', [None], 'int32')
        cell = fluid.layers.GRUCell(8)
        decoder = fluid.layers.BasicDecoder(cell, fluid.layers.TrainingHelper(x, length))
        (outputs, tokens), last = fluid.layers.dynamic_decode(decoder, cell.get_initial_states(x))
    """

    def __init__(self, inputs: Variable, sequence_length: Variable, time_major: bool = False) -> None:
        self.inputs = inputs
        self.sequence_length = sequence_length
        self.time_major = time_major
        # One more step, so that the step after the last one can be read.
        self.inputs_ = map_structure(self._one_step_more, inputs)

    def _one_step_more(self, x: Variable) -> Variable:
        steps = 0 if self.time_major else 1
        return slicing.pad(x, [1 if i == 2 * steps + 1 else 0 for i in range(2 * len(x.shape))])

    def initialize(self) -> tuple[Any, ...]:
        """Returns the first step of the sequences.

        Returns:
            tuple: (input, finished); a sequence of length 0 is finished.

        Example:
            x, length = fluid.data('x', [None, None, 4]), fluid.data('length', [None], 'int32')
            first, finished = fluid.layers.TrainingHelper(x, length).initialize()
        """
        none = tensor.fill_constant([1], self.sequence_length.dtype, 0)
        finished = equal(self.sequence_length, none)
        return map_structure(lambda x: x[0] if self.time_major else x[:, 0], self.inputs), finished

    @with_texts(_STEP, **_UNUSED)
    def sample(self, time: Variable, outputs: Variable, states: Variable) -> Variable:
        """Chooses the tokens with the highest scores.

        Returns:
            Variable: the tokens, int64, shape [sequences].

        Example:
            x, length = fluid.data('x', [None, None, 4]), fluid.data('length', [None], 'int32')
            tokens = fluid.layers.TrainingHelper(x, length).sample(None, fluid.data('scores', [None, 20]), None)
        """
        return search.argmax(outputs, axis=-1)

    def next_inputs(self, time: Variable, outputs: Variable, states: Variable, sample_ids: Variable) -> tuple[Any, ...]:
        """Returns the next step of the sequences.

        Args:
            time (Variable): the number of the step, int64 or int32, shape [1].
            outputs (Variable): not used.
            states (Variable): the cell's next state.
            sample_ids (Variable): not used.

        Returns:
            tuple: (finished, next input, states).

        Example:
            x, length = fluid.data('x', [None, None, 4]), fluid.data('length', [None], 'int32')
            time = fluid.layers.fill_constant([1], 'int64', 0)
            finished, row, _ = fluid.layers.TrainingHelper(x, length).next_inputs(time, None, None, None)
        """
        if time.dtype != VarType.INT32:
            time = tensor.cast(time, "int32")
        if self.sequence_length.dtype != time.dtype:
            self.sequence_length = tensor.cast(self.sequence_length, time.dtype)
        after = time + 1
        finished = less_equal(self.sequence_length, after)
        axes = [0 if self.time_major else 1]
        rows = map_structure(
            lambda x: reshaping.squeeze(slicing.slice(x, axes=axes, starts=[after], ends=[after + 1]), axes=axes),
            self.inputs_,
        )
        return finished, rows, states


class GreedyEmbeddingHelper(DecodeHelper):
    """Reads the embedding of the token with the highest score in the previous step.

    Args:
        embedding_fn (callable): converts tokens to the cell's inputs.
        start_tokens (Variable): the first token of each sequence, int64, shape [sequences].
        end_token (int): the token that ends a sequence.

    Example:
        start, cell = fluid.data('start', [None], 'int64'), fluid.layers.GRUCell(8)
        helper = fluid.layers.GreedyEmbeddingHelper(
            lambda ids: fluid.embedding(ids, [20, 8], param_attr='words'), start, end_token=1)
        decoder = fluid.layers.BasicDecoder(cell, helper, lambda out: fluid.layers.fc(out, 20))
        (scores, tokens), last = fluid.layers.dynamic_decode(decoder, fluid.data('h', [None, 8]), max_step_num=10)
    """

    def __init__(self, embedding_fn: Callable[..., Any], start_tokens: Variable, end_token: int) -> None:
        self.embedding_fn = embedding_fn
        self.start_tokens = start_tokens
        self.end_token = tensor.fill_constant([1], "int64", end_token)

    def initialize(self) -> tuple[Any, ...]:
        """Returns the embedding of the start tokens; no sequence is finished.

        Returns:
            tuple: (input, finished).

        Example:
            start = fluid.data('start', [None], 'int64')
            helper = fluid.layers.GreedyEmbeddingHelper(lambda ids: fluid.embedding(ids, [20, 8]), start, 1)
            first, finished = helper.initialize()
        """
        finished = creation.fill_constant_batch_size_like(self.start_tokens, [-1], "bool", False, force_cpu=True)
        return self.embedding_fn(self.start_tokens), finished

    @with_texts(_STEP, **_UNUSED)
    def sample(self, time: Variable, outputs: Variable, states: Variable) -> Variable:
        """Chooses the tokens with the highest scores.

        Returns:
            Variable: the tokens, int64, shape [sequences].

        Example:
            start = fluid.data('start', [None], 'int64')
            helper = fluid.layers.GreedyEmbeddingHelper(lambda ids: fluid.embedding(ids, [20, 8]), start, 1)
            tokens = helper.sample(None, fluid.data('scores', [None, 20]), None)
        """
        return search.argmax(outputs, axis=-1)

    @with_texts(_STEP, **_UNUSED)
    def next_inputs(self, time: Variable, outputs: Variable, states: Variable, sample_ids: Variable) -> tuple[Any, ...]:
        """Returns the embedding of the sampled tokens; a sequence whose token is the end token is finished.

        Args:
            outputs (Variable): not used.
            states (Variable): the cell's next state.

        Returns:
            tuple: (finished, next input, states).

        Example:
            start = fluid.data('start', [None], 'int64')
            helper = fluid.layers.GreedyEmbeddingHelper(lambda ids: fluid.embedding(ids, [20, 8]), start, 1)
            finished, row, _ = helper.next_inputs(None, None, None, fluid.data('tokens', [None], 'int64'))
        """
        finished = equal(sample_ids, self.end_token)
        return finished, self.embedding_fn(sample_ids), states


class SampleEmbeddingHelper(GreedyEmbeddingHelper):
    """Reads the embedding of a token that is drawn from the softmax of the scores.

    Args:
        embedding_fn (callable): converts tokens to the cell's inputs.
        start_tokens (Variable): the first token of each sequence, int64, shape [sequences].
        end_token (int): the token that ends a sequence.
        softmax_temperature (float): divides the scores: above 1 rarer tokens are drawn more often; None: 1.
        seed (int): seed of the draws; None: a new one in each run.

    Example:
        start, cell = fluid.data('start', [None], 'int64'), fluid.layers.GRUCell(8)
        helper = fluid.layers.SampleEmbeddingHelper(
            lambda ids: fluid.embedding(ids, [20, 8], param_attr='words'), start, end_token=1, seed=3)
        decoder = fluid.layers.BasicDecoder(cell, helper, lambda out: fluid.layers.fc(out, 20))
        (scores, tokens), last = fluid.layers.dynamic_decode(decoder, fluid.data('h', [None, 8]), max_step_num=10)
    """

    def __init__(
        self,
        embedding_fn: Callable[..., Any],
        start_tokens: Variable,
        end_token: int,
        softmax_temperature: float | None = None,
        seed: int | None = None,
    ) -> None:
        super().__init__(embedding_fn, start_tokens, end_token)
        self.softmax_temperature = (
            None if softmax_temperature is None else tensor.fill_constant([1], "float32", softmax_temperature)
        )
        self.seed = seed

    @with_texts(_STEP, **_UNUSED)
    def sample(self, time: Variable, outputs: Variable, states: Variable) -> Variable:
        """Draws a token for each sequence from the softmax of its scores.

        Args:
            outputs (Variable): the scores of all tokens, float32, shape [sequences, tokens].

        Returns:
            Variable: the tokens, same type as `start_tokens`, shape [sequences].

        Example:
            start = fluid.data('start', [None], 'int64')
            helper = fluid.layers.SampleEmbeddingHelper(lambda ids: fluid.embedding(ids, [20, 8]), start, 1)
            tokens = helper.sample(None, fluid.data('scores', [None, 20]), None)
        """
        scores = outputs if self.softmax_temperature is None else outputs / self.softmax_temperature
        shares = nn.softmax(scores)
        shares.stop_gradient = True
        dtype: Any = self.start_tokens.dtype
        return sampling_id(shares, seed=self.seed or 0, dtype=dtype)
