# Written by tools/dev/gen_stubs.py.
# mypy: disable-error-code="override"
from typing import Any, Callable, Iterable, Iterator

from enum import IntEnum as IntEnum
from penstock.fluid.layer_helper import LayerHelper as LayerHelper
from penstock.fluid.variable import Variable as Variable

class OpProtoHolder:
    @staticmethod
    def generated_op_attr_names() -> set[str]: ...
    def get_op_proto(self, type: str) -> Any: ...
    @classmethod
    def instance(cls) -> Any: ...
    @property
    def op_proto_map(self) -> Any: ...
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
def generate_layer_fn(op_type: str) -> Any: ...
def to_dtype(dtype: Any) -> Any: ...
__all__: list[str]
