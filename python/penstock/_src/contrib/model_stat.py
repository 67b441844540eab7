"""Statistics of a network: the parameters and floating-point operations of each op."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from penstock._src.ir.block import Block
    from penstock._src.ir.operator import Operator
    from penstock._src.ir.program import Program

    _Extents = tuple[int, ...]
    _Shape = Callable[[str], _Extents]
    _Count = Callable[[Operator, _Shape, _Extents, _Extents], tuple[int, int]]


def summary(main_prog: Program) -> None:
    """Prints a table of the main compute ops: shapes, parameters and floating-point operations for one example.

    Args:
        main_prog (Program): the program; ops of all its blocks count.

    Example:
        y = fluid.layers.fc(fluid.data('x', [None, 4]), 2, act='relu')
        fluid.contrib.summary(fluid.default_main_program())
    """
    rows = [row for block in main_prog.blocks for row in (_row(block, op) for op in block.ops) if row]
    lines: list[tuple[str, ...]] = [("No.", "TYPE", "INPUT", "OUTPUT", "PARAMs", "FLOPs")]
    lines += [tuple(map(str, (number,) + row)) for number, row in enumerate(rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(6)]
    for line in lines:
        print("  ".join(cell.rjust(width) for cell, width in zip(line, widths)))
    params, flops = sum(row[3] for row in rows), sum(row[4] for row in rows)
    print(f"Total PARAMs: {params}({params / 1e6:.4f}M)")
    print(f"Total FLOPs: {flops}({flops / 1e9:.2f}G)")
    print(f"Counted: {', '.join(sorted(_COUNTED))}")


def _row(block: Block, op: Operator) -> tuple[str, list[int], list[int], int, int] | None:
    """Returns (type, input shape, output shape, parameters, operations) without the batch; None for other ops."""
    if op.type not in _COUNTED:
        return None
    in_slot, out_slot, count = _COUNTED[op.type]

    def shape(name: str) -> tuple[int, ...]:
        return tuple(block._var_recursive(name).shape)

    read, made = shape(op.input(in_slot)[0]), shape(op.output(out_slot)[0])
    params, flops = count(op, shape, read[1:], made[1:])
    return op.type, list(read[1:]), list(made[1:]), params, flops


def _conv(op: Operator, shape: _Shape, read: _Extents, made: _Extents) -> tuple[int, int]:
    count, per_output = shape(op.input("Filter")[0])[0], math.prod(shape(op.input("Filter")[0])[1:])
    biased = int("Bias" in op.input_names and bool(op.input("Bias")))
    return count * (per_output + biased), 2 * math.prod(made) * (per_output + biased)


def _mul(op: Operator, shape: _Shape, read: _Extents, made: _Extents) -> tuple[int, int]:
    weights = math.prod(shape(op.input("Y")[0]))
    return weights, 2 * weights


def _pool(op: Operator, shape: _Shape, read: _Extents, made: _Extents) -> tuple[int, int]:
    window: Any = read[-2:] if op.attr("global_pooling") else op.attr("ksize")
    return 0, math.prod(made) * math.prod(window)


def _batch_norm(op: Operator, shape: _Shape, read: _Extents, made: _Extents) -> tuple[int, int]:
    return 2 * math.prod(shape(op.input("Scale")[0])), 2 * math.prod(read)


def _elementwise(op: Operator, shape: _Shape, read: _Extents, made: _Extents) -> tuple[int, int]:
    return 0, math.prod(made)


def _prelu(op: Operator, shape: _Shape, read: _Extents, made: _Extents) -> tuple[int, int]:
    return math.prod(shape(op.input("Alpha")[0])), math.prod(made)


# Op type: its input slot, its output slot, and a function that returns (parameters, operations).
_COUNTED: dict[str, tuple[str, str, _Count]] = {
    "conv2d": ("Input", "Output", _conv),
    "depthwise_conv2d": ("Input", "Output", _conv),
    "mul": ("X", "Out", _mul),
    "pool2d": ("X", "Out", _pool),
    "batch_norm": ("X", "Y", _batch_norm),
    "prelu": ("X", "Out", _prelu),
}
_COUNTED.update((kind, ("X", "Out", _elementwise)) for kind in ("leaky_relu", "relu", "sigmoid", "tanh"))
