"""IfElse: one block for the rows where a condition is true, another for the others."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from penstock._src.ir import unique_name
from penstock._src.ir.variable import Variable
from penstock._src.layers import tensor, tensor_array
from penstock._src.layers.control_flow_blocks import ConditionalBlock
from penstock._src.layers.helper import LayerHelper, require_variables

if TYPE_CHECKING:
    from collections.abc import Iterator
    from contextlib import AbstractContextManager
    from typing import Any

    from penstock._src.ir.block import Block


class IfElse:
    """Runs one block for the rows where a condition is true and another for the others, and joins the results.

    Args:
        cond (Variable): shape [N, 1], bool: one value for each row.
        name (str | None): prefix of the names of the variables that the layer creates.

    Raises:
        TypeError: `cond` is not a Variable.

    Example:
        x = fluid.data('x', [None, 1])
        zero = fluid.layers.fill_constant_batch_size_like(x, [-1, 1], 'float32', 0.0)
        either = fluid.layers.IfElse(fluid.layers.less_than(x, zero))
        with either.true_block():
            either.output(fluid.layers.scale(either.input(x), -1.0))
        with either.false_block():
            either.output(either.input(x))
        magnitude, = either()
    """

    OUT_IF_ELSE_BLOCKS, IN_IF_ELSE_TRUE_BLOCKS, IN_IF_ELSE_FALSE_BLOCKS = range(3)

    def __init__(self, cond: Variable, name: str | None = None) -> None:
        require_variables("IfElse", cond=cond)
        if name is not None and not isinstance(name, str):
            raise TypeError(f"IfElse: name must be a str, not {type(name).__name__}")
        self.helper = LayerHelper("ifelse", name=name)
        self.cond = cond
        self.input_table: dict[str, tuple[Variable, Variable]] = {}
        self.status = IfElse.OUT_IF_ELSE_BLOCKS
        self.output_table: tuple[list[Variable], list[Variable]] = ([], [])  # of the false block, of the true block

    def input(self, x: Variable) -> Variable:
        """Returns the rows of `x` for which the current block runs.

        Args:
            x (Variable): shape [N, ...], any type.

        Returns:
            Variable: shape [rows, ...], same type as `x`.

        Raises:
            ValueError: called outside true_block and false_block.
        """
        if self.status == IfElse.OUT_IF_ELSE_BLOCKS:
            raise ValueError("input must be called inside true_block or false_block")
        if x.name not in self.input_table:
            around = self._around()
            held, others = (
                around.create_var(name=unique_name.generate("ifelse_input" + self.helper.name), dtype=x.dtype)
                for _ in range(2)
            )
            around.append_op(
                "split_lod_tensor", {"X": x, "Mask": self.cond}, {"OutTrue": held, "OutFalse": others}, {"level": 0}
            )
            self.input_table[x.name] = (held, others)
        held, others = self.input_table[x.name]
        return held if self.status == IfElse.IN_IF_ELSE_TRUE_BLOCKS else others

    def true_block(self) -> AbstractContextManager[Any]:
        """Opens the block for the rows where the condition is true.

        Returns:
            A context manager.
        """
        return self._branch(IfElse.IN_IF_ELSE_TRUE_BLOCKS)

    def false_block(self) -> AbstractContextManager[Any]:
        """Opens the block for the rows where the condition is false.

        Returns:
            A context manager.
        """
        return self._branch(IfElse.IN_IF_ELSE_FALSE_BLOCKS)

    @contextlib.contextmanager
    def _branch(self, status: int) -> Iterator[None]:
        self.status = status
        try:
            with ConditionalBlock([self.cond]).block():
                yield
                if not self._outputs():
                    raise ValueError("a block of an IfElse must call output")
        finally:
            self.status = IfElse.OUT_IF_ELSE_BLOCKS

    def _outputs(self) -> list[Variable]:
        return self.output_table[1 if self.status == IfElse.IN_IF_ELSE_TRUE_BLOCKS else 0]

    def output(self, *outs: Variable) -> None:
        """Declares the results of the current block; both blocks must have the same number of results.

        Args:
            outs (Variable): the results, one row for each row of the block's input.

        Raises:
            ValueError: called outside true_block and false_block.
            TypeError: a result is not a Variable.
        """
        if self.status == IfElse.OUT_IF_ELSE_BLOCKS:
            raise ValueError("output must be called inside true_block or false_block")
        around = self._around()
        for each in outs:
            if not isinstance(each, Variable):
                raise TypeError(f"output takes Variables, not {type(each).__name__}")
            outside = around.create_var(
                name=unique_name.generate("_".join([self.helper.name, "output"])), dtype=each.dtype
            )
            self._outputs().append(outside)
            tensor.assign(each, outside)

    def __call__(self) -> list[Variable]:
        if self.status != IfElse.OUT_IF_ELSE_BLOCKS:
            raise ValueError("an IfElse returns its outputs after its blocks have ended")
        others, held = self.output_table
        if not others and not held:
            raise ValueError("an IfElse needs a true_block or a false_block before it returns outputs")
        if len(others) != len(held) and others and held:
            raise ValueError(
                f"true_block has {len(held)} outputs and false_block {len(others)}; both must have the same number"
            )
        if not others or not held:
            return others or held
        return [
            tensor_array.merge_lod_tensor(in_true=yes, in_false=no, mask=self.cond, x=self.cond, level=0)
            for no, yes in zip(others, held)
        ]

    def _around(self) -> Block:
        program = self.helper.main_program
        return program.block(program.current_block().parent_idx)
