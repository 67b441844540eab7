"""Functions for layers whose ops run in their own blocks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock._src.ir.program import Program
from penstock._src.ir.types import VarType
from penstock._src.ir.variable import Variable
from penstock._src.layers.helper import LayerHelper

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from contextlib import AbstractContextManager
    from typing import Any

    from penstock._src.ir.block import Block


def crossing_names(block: Block, written: Iterable[str] = ()) -> tuple[list[str], list[str]]:
    """Finds the names that a block's ops read before they write them, and those that they write.

    Args:
        block (Block): the block.
        written (Iterable): names that count as written before the first op.

    Returns:
        tuple: two lists of names, each name once, in order.

    Example:
        from penstock._src.layers.control_flow_blocks import crossing_names
        y = fluid.layers.relu(fluid.data('x', [2]))
        assert crossing_names(y.block) == (['x'], [y.name])
    """
    reads: dict[str, None] = {}
    writes = dict.fromkeys(written)
    for op in block.ops:
        reads.update((name, None) for name in op.input_arg_names if name not in writes)
        writes.update((name, None) for name in op.output_arg_names)
    return list(reads), list(writes)


def outer_vars(block: Block, names: Sequence[str]) -> list[Variable]:
    """Finds the variables that an enclosing block declares.

    Args:
        block (Block): the inner block.
        names (list[str]): names.

    Returns:
        list[Variable]: those that an enclosing block declares.

    Example:
        from penstock._src.layers.control_flow_blocks import outer_vars
        x = fluid.data('x', [2])
        inner = fluid.default_main_program()._create_block()
        assert [var.name for var in outer_vars(inner, ['x', 'y'])] == ['x']
        fluid.default_main_program()._rollback()
    """
    around = block.program.block(block.parent_idx)
    found = (around._find_var_recursive(name) for name in names)
    return [var for var in found if var is not None]


def crossing_vars(
    around: Block, inside: Block, written: Iterable[str] = ()
) -> tuple[list[Variable], list[Variable], Variable]:
    """Returns the variables of enclosing blocks that a block reads, those that it writes, and a variable for its
    scopes."""
    reads, writes = crossing_names(inside, written)
    return outer_vars(inside, reads), outer_vars(inside, writes), around.create_var(type=VarType.STEP_SCOPES)


class BlockGuard:
    """A context manager that adds a block to a program; ops created inside go into it. An op that runs the block is up
    to the caller.

    Args:
        main_program (Program): the program. Layers add ops to it if it is the default main program.

    Raises:
        TypeError: `main_program` is not a Program.

    Example:
        main = fluid.default_main_program()
        with fluid.layers.control_flow.BlockGuard(main):
            one = fluid.layers.ones([1], 'float32')
        assert one.block is main.block(1) and main.current_block() is main.block(0)
    """

    def __init__(self, main_program: Program) -> None:
        if not isinstance(main_program, Program):
            raise TypeError(f"BlockGuard takes a Program, not {type(main_program).__name__}")
        self.main_program = main_program

    def __enter__(self) -> None:
        self.main_program._create_block()

    def __exit__(self, exc_type: object, exc_val: object, exc_tb: object) -> None:
        self.main_program._rollback()


class OpenedGuard(BlockGuard):
    """A guard that opens the block of a layer by the layer's own context manager, `opened`."""

    def __init__(self, main_program: Program, opened: AbstractContextManager[Any]) -> None:
        super().__init__(main_program)
        self._opened = opened

    def __enter__(self) -> None:
        self._opened.__enter__()

    def __exit__(self, exc_type: Any, exc_val: Any, exc_tb: Any) -> None:
        self._opened.__exit__(exc_type, exc_val, exc_tb)


class ConditionalBlock:
    """Runs the ops created inside block() only if the condition holds.

    Args:
        inputs (list[Variable]): the condition.
        is_scalar_condition (bool): True: `inputs` is one bool, shape [1]; False: the block runs if none of the inputs
            is empty.
        name (str | None): prefix of the names of the variables that it creates.

    Raises:
        TypeError: an input is not a Variable.

    Example:
        from penstock.fluid.layers.control_flow import ConditionalBlock
        x = fluid.data('x', [1])
        result = fluid.layers.fill_constant([1], 'float32', 0.0)
        with ConditionalBlock([x > 0.0], is_scalar_condition=True).block():
            fluid.layers.assign(x, result)
    """

    def __init__(self, inputs: Sequence[Variable], is_scalar_condition: bool = False, name: str | None = None) -> None:
        for each in inputs:
            if not isinstance(each, Variable):
                raise TypeError(f"a condition must be a Variable, not {type(each).__name__}")
        self.inputs = inputs
        self.is_scalar_condition = is_scalar_condition
        self.helper = LayerHelper("conditional_block", name=name)

    def block(self) -> ConditionalBlock:
        """Returns a context manager; ops created inside it go into the block.

        Returns:
            ConditionalBlock: itself.
        """
        return self

    def __enter__(self) -> None:
        self._program = self.helper.main_program
        self._program._create_block()

    def __exit__(self, exc_type: object, exc_val: object, exc_tb: object) -> None:
        inside = self._program.current_block()
        self._program._rollback()
        if exc_type is None:
            self._append_op(inside)

    def _append_op(self, inside: Block) -> None:
        """Appends the op to the enclosing block, with the variables that the inner block reads and writes there."""
        around = self._program.current_block()
        outside, out, scope = crossing_vars(around, inside)
        inputs, outputs = {"Cond": self.inputs, "Input": outside}, {"Out": out, "Scope": [scope]}
        attrs = {"sub_block": inside, "is_scalar_condition": self.is_scalar_condition}
        around.append_op("conditional_block", inputs, outputs, attrs)


class ConditionalBlockGuard(OpenedGuard):
    """A context manager that opens the block of a ConditionalBlock, as its method block() does.

    Args:
        block (ConditionalBlock): runs the ops that are created inside.

    Raises:
        TypeError: `block` is not a ConditionalBlock.

    Example:
        from penstock.fluid.layers.control_flow import ConditionalBlock, ConditionalBlockGuard
        x = fluid.data('x', [1])
        result = fluid.layers.fill_constant([1], 'float32', 0.0)
        with ConditionalBlockGuard(ConditionalBlock([x > 0.0], is_scalar_condition=True)):
            fluid.layers.assign(x, result)
    """

    def __init__(self, block: ConditionalBlock) -> None:
        if not isinstance(block, ConditionalBlock):
            raise TypeError(f"ConditionalBlockGuard takes a ConditionalBlock, not {type(block).__name__}")
        super().__init__(block.helper.main_program, block.block())
        self.block = block
