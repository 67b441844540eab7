# Written by tools/dev/gen_stubs.py.
# mypy: disable-error-code="override"
from typing import Any, Callable, Iterable, Iterator

from penstock.fluid.framework import Block as Block
from penstock.fluid.framework import Program as Program
from penstock.fluid.transpiler.details.program_utils import op_to_code as op_to_code
from penstock.fluid.transpiler.details.program_utils import variable_to_code as variable_to_code

def draw_block_graphviz(block: Block, highlights: list[str] | None = ..., path: str = ...) -> Any: ...
def pprint_block_codes(block_desc: Block, show_backward: bool = ...) -> str: ...
def pprint_program_codes(program_desc: Any) -> str: ...
__all__: list[str]
