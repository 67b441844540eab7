"""Fluid's multi_batch_merge_pass: a step runs the forward and backward pass several times, then updates the parameters
once with the mean of the gradients.

    forward, backward (w@GRAD)                         update w
    forward, backward (w@GRAD.repeat.0)
    forward, backward (w@GRAD.repeat.1)
    w@GRAD = scale(sum(w@GRAD.repeat.0, w@GRAD.repeat.1), 1/2)     update w

Each repetition reads what was fed, or the next batch of a reader. Fetched variables have the values of the last one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock._src.base.errors import not_built, program_error
from penstock._src.executor.data_parallel import uses_updates
from penstock._src.ir.program import OpRole, Program

if TYPE_CHECKING:
    from penstock._src.ir.block import Block
    from penstock._src.ir.descs import OpDesc
    from penstock._src.ir.operator import Operator


_UPDATES = OpRole.Optimize | OpRole.RPC | OpRole.Dist


def merged(program: Program, repeats: int) -> Program:
    """Returns a copy of a training program that repeats its forward and backward pass.

    Args:
        program (Program): the program, after minimize and after a transpiler.
        repeats (int): how often.

    Returns:
        Program: a new one.

    Raises:
        penstock.ProgramError: `repeats` is no count, or the program has nothing to repeat (E-batch-merge).
    """
    if isinstance(repeats, bool) or not isinstance(repeats, int) or repeats < 1:
        raise program_error(
            "E-batch-merge",
            f"multi_batch_merge_pass: num_repeats is {repeats!r}; set it to an integer of at "
            "least 1: builder.append_pass('multi_batch_merge_pass').set('num_repeats', 4)",
        )
    if uses_updates(program):
        raise program_error(
            "E-batch-merge",
            "multi_batch_merge_pass: ops outside the updates read what the updates "
            "compute, as dynamic loss scaling does, so they cannot be repeated before them",
        )
    copy = Program._of(program.desc.copy())
    for name, value in program.__dict__.items():  # marks of transpilers and of the runtime
        copy.__dict__.setdefault(name, value)
    copy._copy_parameter_attrs_from(program)
    _Merge(copy.global_block(), repeats).run()
    return copy


class _Merge:
    def __init__(self, block: Block, repeats: int) -> None:
        self._block, self._repeats = block, repeats
        self._count = len(block.ops)
        self._rates: list[Operator] = []
        self._repeated: list[Operator] = []
        self._updates: list[Operator] = []
        self._param_of: dict[str, str] = {}  # gradient -> parameter, for those that updates read
        for op in block.ops:
            self._sort(op)
        if not self._repeated or not self._param_of:
            raise program_error(
                "E-batch-merge",
                "multi_batch_merge_pass: the program has no updates of parameters; "
                "apply the pass to a program after minimize",
            )

    def _sort(self, op: Operator) -> None:
        role = op._role
        if role & _UPDATES:
            self._updates.append(op)
            names = op._names_attr("op_role_var") if op.has_attr("op_role_var") else []
            self._param_of.update(zip(names[1::2], names[::2]))
        else:
            (self._rates if role & OpRole.LRSched else self._repeated).append(op)

    def run(self) -> None:
        """Appends the ops in their new order, then removes the old ones."""
        for op in self._rates:
            self._append(op)
        made: dict[str, list[str]] = {}  # gradient -> its names in the repetitions
        for repeat in range(self._repeats):
            for op in self._repeated:
                self._append_repeated(op, repeat, made)
        for grad, names in made.items():
            self._append_mean(grad, names)
        for op in self._updates:
            self._append(op)
        self._block.desc._remove_op(0, self._count)

    def _append(self, op: Operator) -> OpDesc:
        copy = self._block.desc.append_op()
        copy.copy_from(op.desc)
        return copy

    def _append_repeated(self, op: Operator, repeat: int, made: dict[str, list[str]]) -> None:
        copy = self._append(op)
        if op.type == "batch_norm":
            self._own_moments(op, copy, repeat)
        for name in op.output_arg_names:
            if name not in self._param_of:
                continue
            if op.type in ("while_grad", "conditional_block_grad", "recurrent_grad"):
                raise not_built(
                    f"multi_batch_merge_pass: {name}, the gradient of a parameter, comes from a loop "
                    "or a branch; the pass cannot repeat those"
                )
            own = f"{name}.repeat.{repeat}"
            names = made.setdefault(name, [])
            if own not in names:
                self._declare(own, name)
                names.append(own)
            copy._rename_output(name, own)
            copy._rename_input(name, own)
            if copy.has_attr("op_role_var"):
                copy.remove_attr("op_role_var")
        for name in op.input_arg_names:  # the gradient of a parameter that is used several times
            if name in made and name not in op.output_arg_names:
                copy._rename_input(name, f"{name}.repeat.{repeat}")

    def _own_moments(self, op: Operator, copy: OpDesc, repeat: int) -> None:
        """Gives a repetition its own running moments, if the program declares variables for them, as Fluid's scripts
        do; otherwise the repetitions update the same ones in turn."""
        for slot in ("Mean", "Variance", "MeanOut", "VarianceOut"):
            name = (op.input(slot) if slot in op.input_names else op.output(slot))[0]
            own = f"{name}.repeat.{repeat}"
            if self._block.has_var(own):
                copy._rename_input(name, own)
                copy._rename_output(name, own)

    def _declare(self, own: str, name: str) -> None:
        var = self._block.var(name)
        self._block.create_var(name=own, type=var.type, dtype=var.dtype, shape=var.shape, persistable=False)

    def _append_mean(self, grad: str, names: list[str]) -> None:
        inputs, out = [self._block.var(name) for name in names], self._block.var(grad)
        with self._block.program._backward_role_guard():
            self._block.append_op("sum", {"X": inputs}, {"Out": out})
            mean = self._block.append_op("scale", {"X": out}, {"Out": out}, {"scale": 1.0 / self._repeats})
        mean._set_attr("op_role_var", [self._param_of[grad], grad])
