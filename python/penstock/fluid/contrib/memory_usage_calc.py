"""Estimates the memory that a program needs."""

# Written by tools/dev/gen_names.py.
from penstock._src.names import facade

if facade.TYPE_CHECKING:
    from penstock._src.contrib.memory_usage import memory_usage
    from penstock._src.ir.program import Program as Program

__all__ = ['memory_usage']

facade.make(__name__)
