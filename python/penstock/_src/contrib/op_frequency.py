"""Counts how often op types occur in a program."""

from __future__ import annotations

import collections

from penstock._src.ir.program import Program


def op_freq_statistic(program: Program) -> tuple[list[tuple[str, int]], list[tuple[str, int]]]:
    """Counts the op types in a program's first block, and the pairs of types of which one reads the other's output.

    Args:
        program (Program): the program.

    Returns:
        tuple: [(type, count)] and [('producer->consumer', count)], the most frequent first. Ops that write only
        parameters are not counted, nor are pairs that a parameter connects.

    Raises:
        TypeError: `program` is not a Program.

    Example:
        y = fluid.layers.relu(fluid.layers.fc(fluid.data('x', [None, 4]), 2))
        types, pairs = fluid.contrib.op_freq_statistic(fluid.default_main_program())
        assert dict(pairs)['mul->elementwise_add'] == 1
    """
    if not isinstance(program, Program):
        raise TypeError(f"op_freq_statistic takes a Program, not {type(program).__name__}")
    parameters = {param.name for param in program.global_block().all_parameters()}
    types: collections.Counter[str] = collections.Counter()
    pairs: collections.Counter[str] = collections.Counter()
    writer: dict[str, str] = {}
    for op in program.global_block().ops:
        for name in op.input_arg_names:
            if name in writer:
                pairs[f"{writer[name]}->{op.type}"] += 1
        made = [name for name in op.output_arg_names if name not in parameters]
        types[op.type] += bool(made)
        writer.update((name, op.type) for name in made)
    return [(kind, count) for kind, count in types.most_common() if count], pairs.most_common()
