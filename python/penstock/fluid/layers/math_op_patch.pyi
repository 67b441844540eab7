# Written by tools/dev/gen_stubs.py.
# mypy: disable-error-code="override"
from typing import Any, Callable, Iterable, Iterator

from enum import IntEnum as IntEnum
from penstock.fluid.layers.indexing import subscript as subscript
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
def nearest_float32(number: Any) -> Any: ...
def patch_variable() -> Any: ...
