# Written by tools/dev/gen_stubs.py.
# mypy: disable-error-code="override"
from typing import Any, Callable, Iterable, Iterator

from penstock.fluid.framework import Program as Program
from penstock.fluid.framework import Variable as Variable

def find_distributed_lookup_table(program: Program) -> str: ...
def find_distributed_lookup_table_inputs(program: Program, table_name: str) -> list[Variable]: ...
def find_distributed_lookup_table_outputs(program: Program, table_name: str) -> list[Variable]: ...
__all__: list[str]
