"""Statistics of a network: the parameters and floating-point operations of each op."""

import math

__all__ = ["summary"]


def summary(main_prog):
    """Prints a table of the main compute ops: shapes, parameters and floating-point operations for one example.

    Args:
        main_prog (Program): the program; ops of all its blocks count.

    Example:
        y = fluid.layers.fc(fluid.data('x', [None, 4]), 2, act='relu')
        fluid.contrib.summary(fluid.default_main_program())
    """
    rows = [row for block in main_prog.blocks for row in (_row(block, op) for op in block.ops) if row]
    lines = [("No.", "TYPE", "INPUT", "OUTPUT", "PARAMs", "FLOPs")]
    lines += [tuple(map(str, (number,) + row)) for number, row in enumerate(rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(6)]
    for line in lines:
        print("  ".join(cell.rjust(width) for cell, width in zip(line, widths)))
    params, flops = (sum(row[column] for row in rows) for column in (3, 4))
    print(f"Total PARAMs: {params}({params / 1e6:.4f}M)")
    print(f"Total FLOPs: {flops}({flops / 1e9:.2f}G)")
    print(f"Counted: {', '.join(sorted(_COUNTED))}")


def _row(block, op):
    """Returns (type, input shape, output shape, parameters, operations) without the batch; None for other ops."""
    if op.type not in _COUNTED:
        return None
    in_slot, out_slot, count = _COUNTED[op.type]

    def shape(name):
        return tuple(block._var_recursive(name).shape)

    read, made = shape(op.input(in_slot)[0]), shape(op.output(out_slot)[0])
    params, flops = count(op, shape, read[1:], made[1:])
    return op.type, list(read[1:]), list(made[1:]), params, flops


def _conv(op, shape, read, made):
    count, per_output = shape(op.input("Filter")[0])[0], math.prod(shape(op.input("Filter")[0])[1:])
    biased = int("Bias" in op.input_names and bool(op.input("Bias")))
    return count * (per_output + biased), 2 * math.prod(made) * (per_output + biased)


def _mul(op, shape, read, made):
    weights = math.prod(shape(op.input("Y")[0]))
    return weights, 2 * weights


def _pool(op, shape, read, made):
    window = read[-2:] if op.attr("global_pooling") else op.attr("ksize")
    return 0, math.prod(made) * math.prod(window)


def _batch_norm(op, shape, read, made):
    return 2 * math.prod(shape(op.input("Scale")[0])), 2 * math.prod(read)


def _elementwise(op, shape, read, made):
    return 0, math.prod(made)


def _prelu(op, shape, read, made):
    return math.prod(shape(op.input("Alpha")[0])), math.prod(made)


# Op type: its input slot, its output slot, and a function that returns (parameters, operations).
_COUNTED = {
    "conv2d": ("Input", "Output", _conv),
    "depthwise_conv2d": ("Input", "Output", _conv),
    "mul": ("X", "Out", _mul),
    "pool2d": ("X", "Out", _pool),
    "batch_norm": ("X", "Y", _batch_norm),
    "prelu": ("X", "Out", _prelu),
}
_COUNTED.update((kind, ("X", "Out", _elementwise)) for kind in ("leaky_relu", "relu", "sigmoid", "tanh"))
