# Written by tools/dev/gen_stubs.py.
# mypy: disable-error-code="override"
from typing import Any, Callable, Iterable, Iterator

from enum import IntEnum as IntEnum
from penstock.fluid.layer_helper import LayerHelper as LayerHelper
from penstock.fluid.layers.arithmetic import elementwise_add as elementwise_add
from penstock.fluid.layers.arithmetic import elementwise_mul as elementwise_mul
from penstock.fluid.layers.arithmetic import reduce_sum as reduce_sum
from penstock.fluid.layers.ops import exp as exp
from penstock.fluid.layers.ops import log as log
from penstock.fluid.layers.tensor import assign as assign
from penstock.fluid.variable import Variable as Variable

class ArgumentError(ValueError, TypeError, AssertionError):
    def __getattr__(self, name: str) -> Any: ...
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
def addcmul(input: Variable, tensor1: Variable, tensor2: Variable, value: float = ..., out: Variable | None = ..., name: str | None = ...) -> Variable: ...
def allclose(input: Variable, other: Variable, rtol: float = ..., atol: float = ..., equal_nan: bool = ..., name: str | None = ...) -> Variable: ...
def clamp(input: Variable, min: Any = ..., max: Any = ..., output: Variable | None = ..., name: str | None = ...) -> Variable: ...
def element_types(**types: Any) -> Any: ...
def elementwise_equal(x: Variable, y: Variable, name: str | None = ...) -> Variable: ...
def log1p(x: Variable, out: Variable | None = ..., name: str | None = ...) -> Variable: ...
def log_softmax(input: Variable, axis: int | None = ..., dtype: str | None = ..., name: str | None = ...) -> Variable: ...
def logsumexp(x: Variable, dim: Any = ..., keepdim: bool = ..., out: Variable | None = ..., name: str | None = ...) -> Variable: ...
def to_dtype(dtype: Any) -> Any: ...
__all__: list[str]
