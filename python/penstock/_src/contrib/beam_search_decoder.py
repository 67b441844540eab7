"""The decoders of a StateCell: over given sentences, for training, and by beam search."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from penstock._src.base.doc_texts import with_texts
from penstock._src.base.errors import program_error
from penstock._src.contrib.state_cell import CELL
from penstock._src.ir import unique_name
from penstock._src.ir.framework import default_main_program
from penstock._src.ir.types import VarDesc
from penstock._src.ir.variable import Variable
from penstock._src.layers import (
    arithmetic,
    beam_search_ops,
    comparison,
    control_flow,
    dynamic_rnn,
    loops,
    nn,
    reshaping,
    sequence,
    sequence_padding,
    tensor,
    tensor_array,
    unary,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from typing import Any

    from penstock._src.contrib.state_cell import InitState, StateCell
    from penstock._src.layers.dynamic_rnn import DynamicRNN


class _Memory:
    """A state within a decoder: its value in this step, and the function that sets that in the next one."""

    def __init__(self, before: Variable, pass_on: Callable[[Variable], object]) -> None:
        self.before, self.pass_on = before, pass_on


class _Decoder:
    """What both decoders share: a block, which is opened once, and a cell, which they use until it ends."""

    def __init__(self, state_cell: StateCell) -> None:
        self._cell = state_cell
        self._state = "before"  # then 'inside', then 'after'
        state_cell._enter(self)

    @property
    def state_cell(self) -> StateCell:
        """StateCell: the cell, for use in the block."""
        self._require_inside("state_cell")
        return self._cell

    def _memory_of(self, init: InitState) -> _Memory:
        """Creates a state in the decoder's block."""
        raise NotImplementedError

    @contextlib.contextmanager
    def _inside(self) -> Iterator[None]:
        if self._state != "before":
            raise program_error("E-decoder-order", f"{type(self).__name__} has only one block()")
        self._state = "inside"
        yield
        self._state = "after"
        self._cell._leave()

    def _require_inside(self, method: str) -> None:
        if self._state != "inside":
            raise program_error("E-decoder-order", f"{type(self).__name__}.{method} is for the decoder's block")

    def _require_after(self) -> None:
        if self._state != "after":
            raise program_error(
                "E-decoder-order", f"{type(self).__name__} returns its outputs after its block has ended"
            )


_DECODER = {
    "opens_the_block": """Opens the block of a step.

Returns:
    A context manager; ops created inside run in each step.

Raises:
    ValueError: the block was opened before."""
}


@with_texts(CELL)
class TrainingDecoder(_Decoder):
    """Runs a StateCell over the words of given sentences.

    Args:
        state_cell (StateCell): the step.
        name (str | None): not used.

    Raises:
        ValueError: another decoder is using the cell.

    Example:
        decoders = fluid.contrib.decoder
        {cell_of_words}

        words = fluid.embedding(fluid.data('words', [None], 'int64', lod_level=1), [1000, 16])
        decoder = decoders.TrainingDecoder(cell)
        with decoder.block():
            decoder.state_cell.compute_state(inputs={'word': decoder.step_input(words)})
            scores = fluid.layers.fc(decoder.state_cell.get_state('h'), 1000, act='softmax')
            decoder.state_cell.update_states()
            decoder.output(scores)
        scores = decoder()
    """

    def __init__(self, state_cell: StateCell, name: str | None = None) -> None:
        super().__init__(state_cell)
        self._rnn = dynamic_rnn.DynamicRNN()

    @contextlib.contextmanager
    @with_texts(_DECODER)
    def block(self) -> Iterator[None]:
        """{opens_the_block}"""
        with self._inside(), self._rnn.block():
            yield

    @property
    def dynamic_rnn(self) -> DynamicRNN:
        """DynamicRNN: the network that runs the steps."""
        return self._rnn

    def step_input(self, x: Variable) -> Variable:
        """Declares an input of which each step reads a row of each sequence: see `DynamicRNN.step_input`.

        Args:
            x (Variable): shape [rows, ...] with sequences.

        Returns:
            Variable: the rows of the step, shape [sequences in the step, ...], same type as `x`.

        Raises:
            ValueError: called outside the block.
        """
        self._require_inside("step_input")
        row: Variable = self._rnn.step_input(x)
        return row

    def static_input(self, x: Variable) -> Variable:
        """Declares an input that every step reads whole: see `DynamicRNN.static_input`.

        Args:
            x (Variable): a row or a sequence for each sequence of the step's inputs, shape [rows, ...].

        Returns:
            Variable: the parts of the sequences that take part in the step, same type as `x`.

        Raises:
            ValueError: called outside the block.
        """
        self._require_inside("static_input")
        whole: Variable = self._rnn.static_input(x)
        return whole

    def output(self, *outputs: Any) -> None:
        """Declares outputs of the decoder.

        Args:
            outputs (Variable): the values of the outputs in the step.

        Raises:
            ValueError: called outside the block.
        """
        self._require_inside("output")
        self._rnn.output(*outputs)

    def __call__(self) -> Variable:
        self._require_after()
        made: Variable = self._rnn()
        return made

    def _memory_of(self, init: InitState) -> _Memory:
        before = self._rnn.memory(init=init.value, need_reorder=init.need_reorder)
        return _Memory(before, lambda value: self._rnn.update_memory(before, value))


@with_texts(CELL)
class BeamSearchDecoder(_Decoder):
    """Searches for the most probable sentences that a StateCell generates.

    `decode` builds the step that fits a network trained by a TrainingDecoder: the embedding of the previous word, the
    cell, and a fully connected layer with a softmax. If no names are given, the parameters get the same names as in the
    training program if that creates its layers in this order. For another step, open `block` instead.

    Args:
        state_cell (StateCell): the step.
        init_ids (Variable): the first word of each sentence, int64, shape [sentences, 1], two levels of sequences.
        init_scores (Variable): its score, float32, same shape and levels.
        target_dict_dim (int): number of words.
        word_dim (int): width of the embedding.
        input_var_dict (dict): Variables for inputs of the cell that stay the same in all steps, by name. The other
            inputs get the embedding of the previous word.
        topk_size (int): how many words per branch take part in the search.
        sparse_emb (bool): `is_sparse` of the embedding.
        max_len (int): the largest number of steps.
        beam_size (int): branches of a sentence that are kept in each step.
        end_id (int): the word that ends a sentence.
        name (str | None): not used.

    Raises:
        ValueError: another decoder is using the cell.

    Example:
        decoders = fluid.contrib.decoder
        encoded = fluid.data('encoded', [None, 32])
        cell = decoders.StateCell(inputs={'word': None}, states={'h': decoders.InitState(init=encoded)}, out_state='h')

        {updates_h}

        first = fluid.data('first', [None, 1], 'int64', lod_level=2)
        score = fluid.data('score', [None, 1], lod_level=2)
        decoder = decoders.BeamSearchDecoder(cell, first, score, target_dict_dim=1000, word_dim=16, beam_size=4)
        decoder.decode()
        ids, scores = decoder()
    """

    def __init__(
        self,
        state_cell: StateCell,
        init_ids: Variable,
        init_scores: Variable,
        target_dict_dim: int,
        word_dim: int,
        input_var_dict: Mapping[str, Variable] = {},
        topk_size: int = 50,
        sparse_emb: bool = True,
        max_len: int = 100,
        beam_size: int = 1,
        end_id: int = 1,
        name: str | None = None,
    ) -> None:
        super().__init__(state_cell)
        self._init_ids, self._init_scores = init_ids, init_scores
        self._words, self._word_dim = target_dict_dim, word_dim
        self._constant_inputs = dict(input_var_dict)
        self._topk_size, self._sparse_emb = topk_size, sparse_emb
        self._beam_size, self._end_id = beam_size, end_id
        self._around = default_main_program().current_block()
        self._step = tensor.zeros([1], "int64", force_cpu=True)
        self._first_step = tensor.zeros([1], "int64", force_cpu=True)
        self._max_len = tensor.fill_constant([1], "int64", max_len, force_cpu=True)
        self._go_on = comparison.less_than(self._step, self._max_len)
        self._while = loops.While(self._go_on)
        self._arrays: dict[str, Variable] = {}  # by the name of the variable that a step reads
        self._next: list[tuple[Variable, Variable]] = []  # (value, array): what the next step reads
        self._ids_array: Variable | None = None
        self._scores_array: Variable | None = None

    @contextlib.contextmanager
    @with_texts(_DECODER)
    def block(self) -> Iterator[None]:
        """{opens_the_block}"""
        with self._inside(), self._while.block():
            yield
            with control_flow.Switch() as switch, switch.case(self._go_on):
                comparison.increment(self._step, value=1.0, in_place=True)
                for value, array in self._next:
                    tensor_array.array_write(value, self._step, array)
                comparison.less_than(self._step, self._max_len, cond=self._go_on)

    def early_stop(self) -> None:
        """Ends the search with this step, whose values are dropped.

        Raises:
            ValueError: called outside the block.
        """
        self._require_inside("early_stop")
        tensor.fill_constant([1], "bool", 0, force_cpu=True, out=self._go_on)

    def decode(self) -> None:
        """Builds the block of a usual step, as the class describes it.

        Raises:
            ValueError: the block was opened before, or a name of `input_var_dict` is not an input of the cell.
        """
        cell = self._cell
        for name in self._constant_inputs:
            if name not in cell.input_names:
                raise ValueError(
                    f"BeamSearchDecoder: input_var_dict names {name!r}; the inputs of the cell are "
                    f"{', '.join(sorted(cell.input_names))}"
                )
        with self.block():
            ids = self.read_array(init=self._init_ids, is_ids=True)
            scores = self.read_array(init=self._init_scores, is_scores=True)
            word = nn.embedding(ids, [self._words, self._word_dim], is_sparse=self._sparse_emb)
            constants = {name: self.read_array(init=var) for name, var in self._constant_inputs.items()}
            # A row for each branch of the previous step.
            inputs = {name: sequence.sequence_expand(var, scores) for name, var in constants.items()}
            for name in cell.state_names:
                cell.set_state(name, sequence.sequence_expand(cell.get_state(name), scores))
            cell.compute_state({name: inputs.get(name, word) for name in cell.input_names})
            chosen_ids, chosen_scores = self._choose(ids, scores)
            with control_flow.Switch() as switch:
                with switch.case(comparison.is_empty(chosen_ids)):
                    self.early_stop()
                with switch.default():
                    cell.update_states()
                    self.update_array(ids, chosen_ids)
                    self.update_array(scores, chosen_scores)
                    for name, var in constants.items():
                        self.update_array(var, inputs[name])

    # The best words after each branch, and their scores.
    def _choose(self, ids: Variable, scores: Variable) -> tuple[Variable, Variable]:
        out = sequence_padding.lod_reset(self._cell.out_state(), y=scores)
        probabilities = nn.fc(out, self._words, act="softmax")
        best, words = nn.topk(probabilities, k=self._topk_size)
        sums = arithmetic.elementwise_add(unary.log(best), reshaping.reshape(scores, [-1]), axis=0)
        chosen_ids, chosen_scores = beam_search_ops.beam_search(
            ids, scores, words, sums, self._beam_size, end_id=self._end_id, level=0
        )
        return chosen_ids, chosen_scores

    def read_array(self, init: Variable, is_ids: bool = False, is_scores: bool = False) -> Variable:
        """Declares a value that each step passes to the next.

        Args:
            init (Variable): its value in the first step.
            is_ids (bool): whether these are the chosen words, which the decoder returns.
            is_scores (bool): whether these are their scores, which the decoder returns.

        Returns:
            Variable: the value in the current step.

        Raises:
            ValueError: called outside the block, or as both words and scores.
            TypeError: `init` is not a Variable.
        """
        self._require_inside("read_array")
        if is_ids and is_scores:
            raise ValueError("BeamSearchDecoder.read_array: a value is either words or scores, not both")
        _require_variable("read_array", init)
        array = self._around.create_var(
            name=unique_name.generate("beam_search_decoder_array"),
            type=VarDesc.VarType.LOD_TENSOR_ARRAY,
            dtype=init.dtype,
        )
        self._around.append_op("write_to_array", {"X": init, "I": self._first_step}, {"Out": array})
        if is_ids:
            self._ids_array = array
        elif is_scores:
            self._scores_array = array
        before = tensor_array.array_read(array, self._step)
        self._arrays[before.name] = array
        return before

    def update_array(self, array: Variable, value: Variable) -> None:
        """Sets a value in the next step.

        Args:
            array (Variable): the result of `read_array`.
            value (Variable): the value.

        Raises:
            ValueError: called outside the block, or `array` is not a result of `read_array`.
            TypeError: an argument is not a Variable.
        """
        self._require_inside("update_array")
        _require_variable("update_array", array)
        _require_variable("update_array", value)
        if array.name not in self._arrays:
            raise ValueError(f"BeamSearchDecoder.update_array: {array.name} is not a result of read_array")
        self._next.append((value, self._arrays[array.name]))

    def __call__(self) -> tuple[Variable, Variable]:
        self._require_after()
        ids, scores = self._ids_array, self._scores_array
        if ids is None or scores is None:
            raise program_error(
                "E-decoder-order",
                "BeamSearchDecoder: the block declares no words or no scores, read_array(is_ids=True) and "
                "read_array(is_scores=True)",
            )
        found: tuple[Variable, Variable] = beam_search_ops.beam_search_decode(
            ids, scores, beam_size=self._beam_size, end_id=self._end_id
        )
        return found

    def _memory_of(self, init: InitState) -> _Memory:
        before = self.read_array(init=init.value)
        return _Memory(before, lambda value: self.update_array(before, value))


def _require_variable(method: str, value: Variable | int) -> None:
    if not isinstance(value, Variable):
        raise TypeError(f"BeamSearchDecoder.{method} takes Variables, not {type(value).__name__}")
