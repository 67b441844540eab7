# Written by tools/dev/gen_stubs.py.
# mypy: disable-error-code="override"
from typing import Any, Callable, Iterable, Iterator

from penstock.fluid.framework import Program as Program

def op_freq_statistic(program: Program) -> tuple[Any, ...]: ...
__all__: list[str]
