# Written by tools/dev/gen_stubs.py.
# mypy: disable-error-code="override"
from typing import Any, Callable, Iterable, Iterator

from penstock.fluid.debugger import draw_block_graphviz as draw_block_graphviz
from penstock.fluid.framework import Program as Program

def draw_graph(startup_program: Program, main_program: Program, **kwargs: Any) -> Any: ...
__all__: list[str]
