# Written by tools/dev/gen_stubs.py.
# mypy: disable-error-code="override"
from typing import Any, Callable, Iterable, Iterator

from penstock.fluid.core import VarType as VarType
from penstock.fluid.layer_helper import LayerHelper as LayerHelper
from penstock.fluid.layers.blocks import crossing_names as crossing_names
from penstock.fluid.layers.blocks import outer_vars as outer_vars
from penstock.fluid.variable import Variable as Variable

class While:
    AFTER_WHILE_BLOCK: Any
    BEFORE_WHILE_BLOCK: Any
    IN_WHILE_BLOCK: Any
    def __init__(self, cond: Variable, is_test: bool = ..., name: str | None = ...) -> None: ...
    def block(self) -> Any: ...
def while_loop(cond: Callable[..., Any], body: Callable[..., Any], loop_vars: list[Variable] | tuple[Any, ...], is_test: bool = ..., name: str | None = ...) -> list[Variable] | tuple[Any, ...]: ...
__all__: list[str]
