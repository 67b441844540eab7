"""Estimates the memory that a program needs."""

from __future__ import annotations

from penstock import _penstock
from penstock._src.ir.program import Program


def memory_usage(program: Program, batch_size: int) -> tuple[float, float, str]:
    """Returns the memory that a run of the program needs, according to the memory plan of the run.

    Args:
        program (Program): the program, whose first block is planned but not run.
        batch_size (int): replaces the unknown extent of the feeds.

    Returns:
        tuple: (low, high, unit): the planned memory, the memory without sharing between temporaries, and the unit of
        both: 'B', 'KB' or 'MB'. Both include parameters, feeds and the workspace of kernels.

    Raises:
        TypeError: `program` is not a Program.
        penstock.ProgramError: `batch_size` is not positive, or a fed variable has two unknown extents.

    Example:
        loss = fluid.layers.mean(fluid.layers.fc(fluid.data('x', [None, 784]), 10))
        low, high, unit = fluid.contrib.memory_usage(fluid.default_main_program(), batch_size=64)
        assert low <= high and unit in ('B', 'KB', 'MB')
    """
    if not isinstance(program, Program):
        raise TypeError(f"memory_usage takes a Program, not {type(program).__name__}")
    least, most, _ = _penstock.memory_need(program.desc, int(batch_size))
    low, high, unit = float(least), float(most), "B"
    for larger in ("KB", "MB"):
        if low > 1024:
            low, high, unit = low / 1024, high / 1024, larger
    return low, high, unit
