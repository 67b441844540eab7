# Written by tools/dev/gen_stubs.py.
# mypy: disable-error-code="override"
from typing import Any, Callable, Iterable, Iterator

from enum import IntEnum as IntEnum
from penstock.fluid.layer_helper import LayerHelper as LayerHelper
from penstock.fluid.layer_helper import describe as describe
from penstock.fluid.layers.blocks import BlockGuard as BlockGuard
from penstock.fluid.layers.blocks import crossing_names as crossing_names
from penstock.fluid.layers.blocks import outer_vars as outer_vars
from penstock.fluid.variable import Variable as Variable

class VarType(IntEnum):
    BOOL = 0
    FEED_MINIBATCH = 9
    FETCH_LIST = 10
    FP16 = 4
    FP32 = 5
    FP64 = 6
    INT16 = 1
    INT32 = 2
    INT64 = 3
    INT8 = 21
    LOD_RANK_TABLE = 12
    LOD_TENSOR = 7
    LOD_TENSOR_ARRAY = 13
    PLACE_LIST = 14
    RAW = 17
    READER = 15
    SELECTED_ROWS = 8
    SIZE_T = 19
    STEP_SCOPES = 11
    TUPLE = 18
    UINT8 = 20
class While:
    AFTER_WHILE_BLOCK: Any
    BEFORE_WHILE_BLOCK: Any
    IN_WHILE_BLOCK: Any
    def __init__(self, cond: Variable, is_test: bool = ..., name: str | None = ...) -> None: ...
    def block(self) -> Any: ...
class WhileGuard(BlockGuard):
    def __enter__(self) -> Any: ...
    def __exit__(self, exc_type: Any, exc_val: Any, exc_tb: Any) -> Any: ...
    def __init__(self, while_op: Any) -> None: ...
def while_loop(cond: Callable[..., Any], body: Callable[..., Any], loop_vars: list[Variable] | tuple[Any, ...], is_test: bool = ..., name: str | None = ...) -> list[Variable] | tuple[Any, ...]: ...
__all__: list[str]
