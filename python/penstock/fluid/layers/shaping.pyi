# Written by tools/dev/gen_stubs.py.
# mypy: disable-error-code="override"
from typing import Any, Callable, Iterable, Iterator

from enum import IntEnum as IntEnum
from penstock.fluid.layer_helper import LayerHelper as LayerHelper
from penstock.fluid.layers.tensor import int_list as int_list
from penstock.fluid.layers.tensor import is_array as is_array
from penstock.fluid.layers.tensor import join_array as join_array
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
def element_types(**types: Any) -> Any: ...
def expand(x: Variable, expand_times: list[int | Variable] | Variable, name: str | None = ...) -> Variable: ...
def float_attr(value: Any) -> Any: ...
def gather(input: Variable, index: Variable, overwrite: bool = ...) -> Variable: ...
def pad(x: Variable, paddings: list[int], pad_value: float = ..., name: str | None = ...) -> Variable: ...
def pad2d(input: Variable, paddings: list[int] | Variable = ..., mode: str = ..., pad_value: float = ..., data_format: str = ..., name: str | None = ...) -> Variable: ...
def reverse(x: Variable, axis: int | list[int]) -> Variable: ...
def shape(input: Variable) -> Variable: ...
def slice(input: Variable, axes: list[int], starts: list[int | Variable] | Variable, ends: list[int | Variable] | Variable) -> Variable: ...
def stack(x: list[Variable] | Variable, axis: int = ...) -> Variable: ...
def strided_slice(input: Variable, axes: list[int], starts: list[int | Variable] | Variable, ends: list[int | Variable] | Variable, strides: list[int | Variable] | Variable) -> Variable: ...
__all__: list[str]
