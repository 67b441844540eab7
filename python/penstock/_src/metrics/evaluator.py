"""Metrics that a program accumulates in its own variables. fluid.metrics, which accumulates in Python, replaces
them."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING

import numpy

from penstock._src.base.call_site import stack_level
from penstock._src.ir import unique_name
from penstock._src.ir.framework import program_guard
from penstock._src.ir.program import Program
from penstock._src.layers import arithmetic, comparison, sequence_labeling, tensor
from penstock._src.layers.helper import LayerHelper

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from penstock._src.executor.executor import Executor
    from penstock._src.ir.typing import Array
    from penstock._src.ir.variable import Variable


class Evaluator:
    """Keeps the sums of a metric in persistable variables of the default main program.

    Args:
        name (str): name of the metric, and prefix of the names of its variables.
        **kwargs: passed to LayerHelper.

    Attributes:
        states (list): the Variables that hold the sums.
        metrics (list): the Variables that hold the metric of one batch, for fetching.
    """

    def __init__(self, name: str, **kwargs: Any) -> None:
        kind = type(self).__name__
        warnings.warn(
            f"fluid.evaluator.{kind} is deprecated; fluid.metrics.{kind} does the same", stacklevel=stack_level()
        )
        self.states: list[Variable] = []
        self.metrics: list[Variable] = []
        self.helper = LayerHelper(name, **kwargs)
        if self.helper.main_program.current_block().idx != 0:
            raise ValueError(f"{kind}: create an evaluator in the first block, not in a branch or a loop")

    def reset(self, executor: Executor, reset_program: Program | None = None) -> None:
        """Sets the sums to 0.

        Args:
            executor (Executor): runs `reset_program`.
            reset_program (Program): receives the ops; None: a new one.
        """
        program = reset_program or Program()
        with program_guard(program):
            for state in self.states:
                tensor.fill_constant(state.shape, state.dtype, 0.0, out=_declared_in(program, state))
        executor.run(program)

    def eval(self, executor: Executor, eval_program: Program | None = None) -> Any:  # differs by metric
        """Computes the metric over all batches since reset().

        Args:
            executor (Executor): runs `eval_program`.
            eval_program (Program | None): receives the ops that read the sums; None: a new one.

        Raises:
            NotImplementedError: the class does not override it.
        """
        raise NotImplementedError(f"{type(self).__name__} has no eval")

    def _create_state(self, suffix: str, dtype: str, shape: list[int]) -> Variable:
        """Creates a sum. As in Fluid, only reset initializes it."""
        name = f"{unique_name.generate(self.helper.name)}_{suffix}"
        self.states.append(self.helper.create_variable(name=name, persistable=True, dtype=dtype, shape=shape))
        return self.states[-1]

    def _add(self, state: Variable, value: Variable) -> None:
        tensor.sums([state, value], out=state)

    def _sums(self, executor: Executor, eval_program: Program | None) -> list[float]:
        """Returns the numbers in the states."""
        program = eval_program or Program()
        fetches = [_declared_in(program, state) for state in self.states]
        return [value[0] for value in executor.run(program, fetch_list=fetches)]


def _declared_in(program: Program, var: Variable) -> Variable:
    return program.global_block().create_var(
        name=var.name, shape=var.shape, dtype=var.dtype, type=var.type, lod_level=var.lod_level, persistable=True
    )


class ChunkEvaluator(Evaluator):
    """Computes precision, recall and F1 score of chunk detection over batches.

    Args:
        input (Variable): the predicted tags, shape [rows, 1] with sequences, int64.
        label (Variable): the correct tags, in the same form.
        chunk_scheme (str): 'IOB', 'IOE', 'IOBES' or 'plain'.
        num_chunk_types (int): number of chunk types.
        excluded_chunk_types (list): chunk types that are not counted.

    Attributes:
        metrics (list): precision, recall and F1 of one batch.

    Example:
        found = fluid.data('found', [None, 1], 'int64', lod_level=1)
        right = fluid.data('right', [None, 1], 'int64', lod_level=1)
        evaluator = fluid.evaluator.ChunkEvaluator(found, right, 'IOB', num_chunk_types=2)
        exe = fluid.Executor(fluid.CPUPlace())
        evaluator.reset(exe)
        tags = fluid.create_lod_tensor(np.array([[0], [1], [2]]), [[3]], fluid.CPUPlace())
        exe.run(feed={'found': tags, 'right': tags}, fetch_list=evaluator.metrics)
        precision, recall, f1 = evaluator.eval(exe)
        assert precision[0] == recall[0] == f1[0] == 1.0
    """

    def __init__(
        self,
        input: Variable,
        label: Variable,
        chunk_scheme: str,
        num_chunk_types: int,
        excluded_chunk_types: list[int] | None = None,
    ) -> None:
        super().__init__("chunk_eval")
        self.num_infer_chunks, self.num_label_chunks, self.num_correct_chunks = (
            self._create_state(suffix, "int64", [1])
            for suffix in ("num_infer_chunks", "num_label_chunks", "num_correct_chunks")
        )
        precision, recall, f1_score, *counts = sequence_labeling.chunk_eval(
            input, label, chunk_scheme, num_chunk_types, excluded_chunk_types
        )
        for state, count in zip(self.states, counts):
            self._add(state, count)
        self.metrics += [precision, recall, f1_score]

    def eval(self, executor: Executor, eval_program: Program | None = None) -> tuple[Any, ...]:
        """Computes precision, recall and F1 over the batches since reset().

        Args:
            executor (Executor): runs `eval_program`.
            eval_program (Program | None): receives the ops that read the sums; None: a new one.

        Returns:
            tuple: precision, recall and F1, arrays of shape [1] and type float32.
        """
        found, right, correct = (int(count) for count in self._sums(executor, eval_program))
        precision = correct / found if found else 0.0
        recall = correct / right if right else 0.0
        f1_score = 2 * precision * recall / (precision + recall) if correct else 0.0
        return tuple(numpy.array([value], "float32") for value in (precision, recall, f1_score))


class EditDistance(Evaluator):
    """Computes the mean edit distance and the share of incorrect sequences over batches.

    Args:
        input (Variable): the predicted tokens, shape [rows, 1] with sequences, int64.
        label (Variable): the correct tokens, shape [rows, 1] with sequences, int64.
        ignored_tokens (list[int] | None): tokens that are removed first.
        **kwargs (object): passed to LayerHelper.

    Attributes:
        metrics (list): the sum of distances and the number of incorrect sequences of one batch.

    Example:
        found = fluid.data('found', [None, 1], 'int64', lod_level=1)
        right = fluid.data('right', [None, 1], 'int64', lod_level=1)
        evaluator = fluid.evaluator.EditDistance(found, right)
        exe = fluid.Executor(fluid.CPUPlace())
        evaluator.reset(exe)
        words = fluid.create_lod_tensor(np.array([[3], [4]]), [[2]], fluid.CPUPlace())
        exe.run(feed={'found': words, 'right': words}, fetch_list=evaluator.metrics)
        distance, wrong = evaluator.eval(exe)
        assert distance[0] == wrong[0] == 0.0
    """

    def __init__(
        self, input: Variable, label: Variable, ignored_tokens: Sequence[int] | None = None, **kwargs: Any
    ) -> None:
        super().__init__("edit_distance", **kwargs)
        self.total_distance = self._create_state("total_distance", "float32", [1])
        self.seq_num = self._create_state("seq_num", "int64", [1])
        self.instance_error = self._create_state("instance_error", "int64", [1])
        distances, count = sequence_labeling.edit_distance(input, label, ignored_tokens=ignored_tokens)
        right = comparison.equal(distances, tensor.fill_constant([1], "float32", 0.0))
        errors = arithmetic.elementwise_sub(count, arithmetic.reduce_sum(tensor.cast(right, "int64")))
        total = arithmetic.reduce_sum(distances)
        for state, value in zip(self.states, (total, count, errors)):
            self._add(state, value)
        self.metrics += [total, errors]

    def eval(self, executor: Executor, eval_program: Program | None = None) -> tuple[Array, Array]:
        """Computes the mean distance and the share of incorrect sequences over the batches since reset().

        Args:
            executor (Executor): runs `eval_program`.
            eval_program (Program | None): receives the ops that read the sums; None: a new one.

        Returns:
            tuple: the distance and the share, arrays of shape [1] and type float32.
        """
        total, count, errors = self._sums(executor, eval_program)
        return numpy.array([total / count], "float32"), numpy.array([errors / count], "float32")
