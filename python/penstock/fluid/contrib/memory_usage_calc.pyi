# Written by tools/dev/gen_stubs.py.
# mypy: disable-error-code="override"
from typing import Any, Callable, Iterable, Iterator

from penstock.fluid.framework import Program as Program

def memory_usage(program: Program, batch_size: int) -> tuple[Any, ...]: ...
__all__: list[str]
