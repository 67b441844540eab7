"""PipelineOptimizer: a training program that is split into sections."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock._src.base.argument_texts import MINIMIZE
from penstock._src.base.doc_texts import with_texts
from penstock._src.base.errors import program_error
from penstock._src.base.same_arguments import arguments_of
from penstock._src.ir.program import OpRole
from penstock._src.ir.types import CPUPlace, device_of
from penstock._src.ir.variable import grad_var_name
from penstock._src.optimizer.backward import names_of
from penstock._src.optimizer.base import Optimizer

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from penstock._src.ir.block import Block
    from penstock._src.ir.operator import Operator
    from penstock._src.ir.program import Program
    from penstock._src.ir.typing import Place
    from penstock._src.ir.variable import Variable


class PipelineOptimizer:
    """Splits a training program into sections that several devices could run as a pipeline of batches.

    With n entries in cut_list there are 2n - 1 sections: n - 1 of the forward pass, one with the rest, the loss and its
    gradients, and n - 1 with the gradients of the first ones. Each contains the updates of its parameters. One process
    runs them on the CPU, one after the other, so Executor.run of the whole program gives the result of the pipeline.

    Args:
        optimizer (Optimizer): computes the updates.
        cut_list (list | None): for each section, a list of the Variables with which it ends; the last list holds the
            loss. None: one section.
        place_list (list | None): the place of each section; only CPUPlace() is supported.
        concurrency_list (list | None): the number of copies of a section that Fluid runs at once; has no effect.
        queue_size (int): for Fluid's threads; has no effect.
        sync_steps (int): for Fluid's threads; has no effect.
        start_cpu_core_id (int): for Fluid's threads; has no effect.

    Raises:
        ValueError: `place_list` or `concurrency_list` does not have one entry per section.
        NotImplementedError: a place is on a GPU, and PENSTOCK_CUDA_FALLBACK is not set.

    Example:
        hidden = fluid.layers.fc(fluid.data('x', [None, 4]), 8, act='relu')
        loss = fluid.layers.mean(fluid.layers.fc(hidden, 1))
        optimizer = fluid.optimizer.PipelineOptimizer(fluid.optimizer.SGD(0.1), cut_list=[[hidden], [loss]])
        optimizer.minimize(loss)
        sections = fluid.default_main_program()._pipeline_opt['section_program_list']
        assert len(sections) == 3
    """

    def __init__(
        self,
        optimizer: Optimizer,
        cut_list: Sequence[Sequence[Variable | str]] | None = None,
        place_list: Sequence[Place] | None = None,
        concurrency_list: Sequence[int] | None = None,
        queue_size: int = 30,
        sync_steps: int = 1,
        start_cpu_core_id: int = 0,
    ) -> None:
        self._optimizer = optimizer
        self._cut_list = [names_of(names) for names in cut_list or []]
        sections = max(2 * len(self._cut_list) - 1, 1)
        lists: tuple[tuple[str, Sequence[object] | None], ...]
        lists = (("place_list", place_list), ("concurrency_list", concurrency_list))
        for name, values in lists:
            if values is not None and len(values) != sections:
                raise ValueError(
                    f"PipelineOptimizer: {name} has {len(values)} entries, but there are {sections} sections"
                )
        self._place_list = [device_of(place, "PipelineOptimizer") for place in place_list or [CPUPlace()] * sections]
        self._facts = {
            "concurrency_list": concurrency_list or [1] * sections,
            "queue_size": queue_size,
            "start_cpu_core_id": start_cpu_core_id,
            "sync_steps": sync_steps,
        }

    @with_texts(MINIMIZE)
    @arguments_of(Optimizer.minimize)
    def minimize(
        self, loss: Variable, *rest: Any, **named: Any
    ) -> tuple[list[Operator], list[tuple[Variable, Variable]]]:
        """Adds gradients and updates, and splits the program.

        Args:
            {to_minimize}

        Returns:
            tuple: (optimizer ops, [(parameter, gradient)]). The program's `_pipeline_opt` holds the sections in
            'section_program_list', a list of {'program': Program, 'input_set': names that the section reads but does
            not write, 'output_set': names that later sections read}.

        Raises:
            ValueError: a section would be empty, because no op writes the variables that end it.
        """
        made = self._optimizer.minimize(loss, *rest, **named)
        program = loss.block.program
        sections = [_section_of(program, ids) for ids in _cut(program.global_block(), self._cut_list)]
        for number, section in enumerate(sections):
            later: set[str] = set().union(*(each["input_set"] for each in sections[number + 1 :]))
            section["output_set"] &= later
        program._pipeline_opt = dict(
            self._facts,
            trainer="PipelineTrainer",
            device_worker="Section",
            section_program_list=sections,
            place_list=self._place_list,
            param_need_sync=[],
        )
        return made


def _is_update(op: Operator) -> bool:
    return bool(op._role & (OpRole.Optimize | OpRole.LRSched))


def _cut(block: Block, cuts: list[list[str]]) -> list[list[int]]:
    """Returns the positions of the ops of each section."""
    ops = block.ops
    ends = cuts[:-1] + [[grad_var_name(name) for name in names] for names in reversed(cuts[:-1])]
    if len(cuts) > 1:
        ends[len(cuts) - 1] += cuts[-1]
    left = [position for position, op in enumerate(ops) if not _is_update(op)]
    sections = []
    for names in ends:
        taken = _made_of(ops, left, names)
        if not taken:
            raise program_error(
                "E-program-section",
                f"PipelineOptimizer: no op writes {', '.join(names)}, so the section that ends with it is empty",
            )
        sections.append(taken)
        left = [position for position in left if position not in taken]
    sections.append(left)
    section_of: dict[str, int] = {}
    for number, positions in enumerate(sections):
        for position in positions:
            for name in ops[position].input_arg_names:
                section_of.setdefault(name, number)
    for position, op in enumerate(ops):
        if _is_update(op):
            sections[_section_of_update(op, section_of, len(sections))].append(position)
    return [sorted(positions) for positions in sections]


def _made_of(ops: list[Operator], positions: list[int], names: list[str]) -> list[int]:
    """Returns those of the positions whose ops write the names, directly or indirectly."""
    wanted, taken = set(names), []
    for position in reversed(positions):
        if wanted & set(ops[position].output_arg_names):
            wanted.update(ops[position].input_arg_names)
            taken.append(position)
    return taken


def _section_of_update(op: Operator, section_of: dict[str, int], count: int) -> int:
    """Returns the section that computes the gradients of the parameter: as far from the end as its forward ops are from
    the beginning. Ops without a parameter, such as a learning-rate schedule, run in the first section."""
    params = op._names_attr("op_role_var") if op.has_attr("op_role_var") else []
    first = min((section_of[name] for name in params if name in section_of), default=None)
    return 0 if first is None else max(count - 1 - first, first)


def _section_of(program: Program, positions: list[int]) -> dict[str, Any]:
    ops = program.global_block().ops
    kept = set(positions)
    section = program.clone() if len(kept) < len(ops) else program
    block = section.global_block()
    if section is not program:
        for position in reversed(range(len(ops))):
            if position not in kept:
                block._remove_op(position)
        used = {name for op in block.ops for name in op.input_arg_names + op.output_arg_names}
        for name in [name for name in block.vars.keys() if name not in used]:
            block._remove_var(name)
    read: set[str] = set()
    made: set[str] = set()
    for op in block.ops:
        read.update(name for name in op.input_arg_names if name not in made)
        made.update(op.output_arg_names)
    return {"program": section, "input_set": read, "output_set": made}
