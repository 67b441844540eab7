# Written by tools/dev/gen_stubs.py.
# mypy: disable-error-code="override"
from typing import Any, Callable, Iterable, Iterator

from penstock.fluid.framework import Program as Program
from penstock.fluid.framework import Variable as Variable

def memory_optimize(input_program: Program, skip_opt_set: list[Variable | str] | None = ..., print_log: bool = ..., level: int = ..., skip_grads: bool = ...) -> Any: ...
def release_memory(input_program: Program, skip_opt_set: list[Variable | str] | None = ...) -> Any: ...
__all__: list[str]
