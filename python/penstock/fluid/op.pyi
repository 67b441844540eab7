# Written by tools/dev/gen_stubs.py.
# mypy: disable-error-code="override"
from typing import Any, Callable, Iterable, Iterator

from enum import IntEnum as IntEnum
from penstock.fluid.executor import Executor as Executor
from penstock.fluid.framework import Program as Program

DynamicRecurrentOp: Any
class OpDescCreationMethod:
    def __call__(self, **kwargs: Any) -> Any: ...
    def __init__(self, op_proto: Any) -> None: ...
Operator: Any
class OperatorFactory:
    def __call__(self, *args: Any, **kwargs: Any) -> Any: ...
    def get_op_attr_names(self, type: str) -> list[str]: ...
    def get_op_input_names(self, type: str) -> list[str]: ...
    def get_op_inputs(self, type: str) -> list[Any]: ...
    def get_op_output_names(self, type: str) -> list[str]: ...
    def get_op_outputs(self, type: str) -> list[Any]: ...
    def types(self) -> list[str]: ...
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
all_types: Any
def get_all_op_protos() -> list[Any]: ...
proto_of: Any
__all__: list[str]
