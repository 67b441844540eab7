"""How much memory a program needs."""

from penstock import _penstock
from penstock.fluid.framework import Program

__all__ = ['memory_usage']


def memory_usage(program, batch_size):
    """Returns how much memory a run of the program takes, by the plan that the run would use.

    Args:
        program (Program): its first block is planned; nothing is run.
        batch_size (int): the extent that stands for the unknown one of what is fed.

    Returns:
        tuple: (low, high, unit): what is planned; what it would be if no two temporaries shared memory; and the unit of
        both: 'B', 'KB' or 'MB'. Both count parameters, feeds and what kernels need for their work.

    Raises:
        TypeError: it is not a Program.
        penstock.ProgramError: batch_size is not positive, or a fed variable has two unknown extents.

    Example:
        loss = fluid.layers.mean(fluid.layers.fc(fluid.data('x', [None, 784]), 10))
        low, high, unit = fluid.contrib.memory_usage(fluid.default_main_program(), batch_size=64)
        assert low <= high and unit in ('B', 'KB', 'MB')
    """
    if not isinstance(program, Program):
        raise TypeError('memory_usage takes a Program, not %s' % type(program).__name__)
    low, high, _ = _penstock.memory_need(program.desc, int(batch_size))
    for unit in ('B', 'KB', 'MB'):
        if low <= 1024 or unit == 'MB':
            return float(low), float(high), unit
        low, high = low / 1024, high / 1024
