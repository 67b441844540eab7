# Written by tools/dev/gen_stubs.py.
# mypy: disable-error-code="override"
from typing import Any, Callable, Iterable, Iterator

from enum import IntEnum as IntEnum
from penstock.fluid.layer_helper import LayerHelper as LayerHelper
from penstock.fluid.layer_helper import require_variables as require_variables
from penstock.fluid.layers.arrays import array_length as array_length
from penstock.fluid.layers.arrays import array_read as array_read
from penstock.fluid.layers.arrays import array_to_lod_tensor as array_to_lod_tensor
from penstock.fluid.layers.arrays import array_write as array_write
from penstock.fluid.layers.arrays import create_array as create_array
from penstock.fluid.layers.arrays import lod_rank_table as lod_rank_table
from penstock.fluid.layers.arrays import lod_tensor_to_array as lod_tensor_to_array
from penstock.fluid.layers.arrays import max_sequence_len as max_sequence_len
from penstock.fluid.layers.arrays import merge_lod_tensor as merge_lod_tensor
from penstock.fluid.layers.arrays import reorder_lod_tensor_by_rank as reorder_lod_tensor_by_rank
from penstock.fluid.layers.arrays import shrink_memory as shrink_memory
from penstock.fluid.layers.arrays import split_lod_tensor as split_lod_tensor
from penstock.fluid.layers.arrays import tensor_array_to_tensor as tensor_array_to_tensor
from penstock.fluid.layers.blocks import BlockGuard as BlockGuard
from penstock.fluid.layers.blocks import ConditionalBlock as ConditionalBlock
from penstock.fluid.layers.blocks import ConditionalBlockGuard as ConditionalBlockGuard
from penstock.fluid.layers.dynamic_rnn import DynamicRNN as DynamicRNN
from penstock.fluid.layers.if_else import IfElse as IfElse
from penstock.fluid.layers.loops import While as While
from penstock.fluid.layers.loops import WhileGuard as WhileGuard
from penstock.fluid.layers.loops import while_loop as while_loop
from penstock.fluid.layers.static_rnn import StaticRNN as StaticRNN
from penstock.fluid.layers.static_rnn import StaticRNNMemoryLink as StaticRNNMemoryLink
from penstock.fluid.variable import Variable as Variable

def Print(input: Variable, first_n: int = ..., message: str | None = ..., summarize: int = ..., print_tensor_name: bool = ..., print_tensor_type: bool = ..., print_tensor_shape: bool = ..., print_tensor_lod: bool = ..., print_phase: str = ...) -> Variable: ...
class Switch:
    def __enter__(self) -> Any: ...
    def __exit__(self, exc_type: Any, exc_val: Any, exc_tb: Any) -> Any: ...
    def __init__(self, name: str | None = ...) -> None: ...
    def case(self, condition: Variable) -> Any: ...
    def default(self) -> Any: ...
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
def case(pred_fn_pairs: list[Any], default: Callable[..., Any] | None = ..., name: str | None = ...) -> Any: ...
def cond(pred: Variable, true_fn: Callable[..., Any] | None = ..., false_fn: Callable[..., Any] | None = ..., name: str | None = ...) -> Any: ...
def element_types(**types: Any) -> Any: ...
def equal(x: Variable, y: Variable, cond: Variable | None = ...) -> Variable: ...
def float_attr(value: Any) -> Any: ...
def getattr_of(module: Any) -> Any: ...
def greater_equal(x: Variable, y: Variable, cond: Variable | None = ...) -> Variable: ...
def greater_than(x: Variable, y: Variable, cond: Variable | None = ...) -> Variable: ...
def increment(x: Variable, value: float = ..., in_place: bool = ...) -> Variable: ...
def is_empty(x: Variable, cond: Variable | None = ...) -> Variable: ...
def less_equal(x: Variable, y: Variable, cond: Variable | None = ...) -> Variable: ...
def less_than(x: Variable, y: Variable, force_cpu: bool | None = ..., cond: Variable | None = ...) -> Variable: ...
def not_equal(x: Variable, y: Variable, cond: Variable | None = ...) -> Variable: ...
def select_input(inputs: list[Variable], mask: Variable) -> Variable: ...
def select_output(input: Variable, outputs: list[Variable], mask: Variable) -> list[Variable]: ...
def switch_case(branch_index: Variable, branch_fns: Any, default: Callable[..., Any] | None = ..., name: str | None = ...) -> Any: ...
def to_dtype(dtype: Any) -> Any: ...
__all__: list[str]
