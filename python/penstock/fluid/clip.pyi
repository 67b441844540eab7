# Written by tools/dev/gen_stubs.py.
# mypy: disable-error-code="override"
from typing import Any, Callable, Iterable, Iterator

from enum import IntEnum as IntEnum
from penstock.fluid.block import Block as Block
from penstock.fluid.framework import Program as Program
from penstock.fluid.variable import Parameter as Parameter

class BaseErrorClipAttr:
    def __getattr__(self, name: str) -> Any: ...
class ErrorClipByValue(BaseErrorClipAttr):
    def __init__(self, max: float, min: float | None = ...) -> None: ...
class GradientClipBase:
    def __call__(self, params_grads: Any) -> Any: ...
    def __init__(self, need_clip: Callable[..., Any] | None = ...) -> None: ...
class GradientClipByGlobalNorm(GradientClipBase):
    def __init__(self, clip_norm: float, group_name: str = ..., need_clip: Callable[..., Any] | None = ...) -> None: ...
class GradientClipByNorm(GradientClipBase):
    def __init__(self, clip_norm: float, need_clip: Callable[..., Any] | None = ...) -> None: ...
class GradientClipByValue(GradientClipBase):
    def __init__(self, max: float, min: float | None = ..., need_clip: Callable[..., Any] | None = ...) -> None: ...
class OpRole:
    Backward: Any
    Dist: Any
    Forward: Any
    LRSched: Any
    Loss: Any
    Optimize: Any
    RPC: Any
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
def append_gradient_clip_ops(param_grads: Any) -> Any: ...
def clip_errors(block: Any, begin: Any) -> Any: ...
def error_clip_callback(block: Block, context: dict[Any, Any]) -> Any: ...
def program_error(id: Any, message: Any, *details: Any) -> Any: ...
def require_numbers(kind: Any, **values: Any) -> Any: ...
def set_gradient_clip(clip: Any, param_list: list[Parameter | str] | None = ..., program: Program | None = ...) -> Any: ...
def stack_level() -> Any: ...
__all__: list[str]
