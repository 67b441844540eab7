# Written by tools/dev/gen_stubs.py.
# mypy: disable-error-code="override"
from typing import Any, Callable, Iterable, Iterator

from enum import IntEnum as IntEnum
from penstock.fluid.layer_helper import LayerHelper as LayerHelper
from penstock.fluid.variable import Variable as Variable

class StaticRNN:
    AFTER_RNN_BLOCK: Any
    BEFORE_RNN_BLOCK: Any
    IN_RNN_BLOCK: Any
    def __call__(self, *args: Any, **kwargs: Any) -> Any: ...
    def __init__(self, name: str | None = ...) -> None: ...
    def memory(self, init: Variable | None = ..., shape: list[int] | None = ..., batch_ref: Variable | None = ..., init_value: float = ..., init_batch_dim_idx: int = ..., ref_batch_dim_idx: int = ...) -> Variable: ...
    def output(self, *outputs: Any) -> Any: ...
    def step(self) -> Any: ...
    def step_input(self, x: Variable) -> Variable: ...
    def step_output(self, o: Variable) -> Any: ...
    def update_memory(self, mem: Variable, var: Variable) -> Any: ...
class StaticRNNMemoryLink:
    def __init__(self, init: Any, pre_mem: Any, mem: Any = ...) -> None: ...
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
def around_names(body: Any, own: Any) -> Any: ...
__all__: list[str]
