"""Programs as text, and searches for ops of a block, as Fluid's scripts use them."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import TextIO

    from penstock._src.ir.block import Block
    from penstock._src.ir.operator import Operator
    from penstock._src.ir.program import Program
    from penstock._src.ir.variable import Variable


def delete_ops(block: Block, ops: Sequence[Operator]) -> None:
    """Removes ops from a block; ops that it does not contain are ignored.

    Args:
        block (Block): the block.
        ops (list[Operator]): its ops.

    Example:
        block = fluid.Program().global_block()
        fluid.transpiler.details.delete_ops(block, block.ops)
    """
    for op in list(ops):
        position = next((i for i, one in enumerate(block.ops) if one is op), -1)
        if position >= 0:
            block._remove_op(position)


def find_op_by_input_arg(block: Block, arg_name: str) -> int:
    """Returns the position of the first op that reads a variable.

    Args:
        block (Block): the block.
        arg_name (str): the variable's name.

    Returns:
        int: the position; -1 if no op reads it.

    Example:
        x = fluid.data('x', [2])
        fluid.layers.relu(x)
        assert fluid.transpiler.details.find_op_by_input_arg(fluid.default_main_program().global_block(), 'x') == 0
    """
    return next((i for i, op in enumerate(block.ops) if arg_name in op.input_arg_names), -1)


def find_op_by_output_arg(block: Block, arg_name: str, reverse: bool = False) -> int:
    """Returns the position of the first op that writes a variable, or of the last.

    Args:
        block (Block): the block.
        arg_name (str): the variable's name.
        reverse (bool): search from the end.

    Returns:
        int: the position; -1 if no op writes it.

    Example:
        y = fluid.layers.relu(fluid.data('x', [2]))
        assert fluid.transpiler.details.find_op_by_output_arg(fluid.default_main_program().global_block(), y.name) == 0
    """
    ops = list(enumerate(block.ops))
    return next((i for i, op in (reversed(ops) if reverse else ops) if arg_name in op.output_arg_names), -1)


def variable_to_code(var: Variable) -> str:
    """Returns a variable as text.

    Args:
        var (Variable): the variable.

    Returns:
        str: one line, such as 'param w : float32[4, 2]'.

    Example:
        assert fluid.transpiler.details.variable_to_code(fluid.data('x', [2])) == 'var x : float32[2]'
    """
    return str(var).strip()


def op_to_code(op: Operator, skip_op_callstack: bool = True) -> str:
    """Returns an op as text.

    Args:
        op (Operator): the op.
        skip_op_callstack (bool): False: the user's line too, where it is known.

    Returns:
        str: one line, such as 'y = relu(X=x)'.

    Example:
        y = fluid.layers.relu(fluid.data('x', [2]))
        assert 'relu(X=x)' in fluid.transpiler.details.op_to_code(y.block.ops[0])
    """
    text = str(op).strip()
    return text if skip_op_callstack or not op.location else f"{text}  # {op.location}"


def block_to_code(block: Block, block_idx: int, fout: TextIO | None = None, skip_op_callstack: bool = False) -> None:
    """Prints a block.

    Args:
        block (Block): the block.
        block_idx (int): its number, which is printed.
        fout (file | None): where to; None: standard output.
        skip_op_callstack (bool): False: the user's line of each op too.

    Example:
        fluid.transpiler.details.block_to_code(fluid.Program().global_block(), 0)
    """
    print(f"block {block_idx} {{", file=fout)
    for var in block.vars.values():
        print("  " + variable_to_code(var), file=fout)
    for op in block.ops:
        print("  " + op_to_code(op, skip_op_callstack), file=fout)
    print("}", file=fout)


def program_to_code(prog: Program, fout: TextIO | None = None, skip_op_callstack: bool = True) -> None:
    """Prints all blocks of a program.

    Args:
        prog (Program): the program.
        fout (file | None): where to; None: standard output.
        skip_op_callstack (bool): False: the user's line of each op too.

    Example:
        fluid.transpiler.details.program_to_code(fluid.Program())
    """
    for number, block in enumerate(prog.blocks):
        block_to_code(block, number, fout, skip_op_callstack)
