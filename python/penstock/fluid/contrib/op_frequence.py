"""Counts how often op types occur in a program."""

# Written by tools/dev/gen_names.py.
from penstock._src.names import facade

if facade.TYPE_CHECKING:
    from penstock._src.contrib.op_frequency import op_freq_statistic
    from penstock._src.ir.program import Program as Program

__all__ = ['op_freq_statistic']

facade.make(__name__)
