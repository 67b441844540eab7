# Written by tools/dev/gen_stubs.py.
# mypy: disable-error-code="override"
from typing import Any, Callable, Iterable, Iterator

from enum import IntEnum as IntEnum
from penstock.fluid.framework import default_main_program as default_main_program
from penstock.fluid.layers.arithmetic import elementwise_add as elementwise_add
from penstock.fluid.layers.arithmetic import elementwise_mul as elementwise_mul
from penstock.fluid.layers.arithmetic import logical_and as logical_and
from penstock.fluid.layers.arithmetic import logical_not as logical_not
from penstock.fluid.layers.arithmetic import logical_or as logical_or
from penstock.fluid.layers.arithmetic import reduce_all as reduce_all
from penstock.fluid.layers.control_flow import increment as increment
from penstock.fluid.layers.control_flow import less_equal as less_equal
from penstock.fluid.layers.filling import zeros_like as zeros_like
from penstock.fluid.layers.loops import While as While
from penstock.fluid.layers.rnn_cells import transposed as transposed
from penstock.fluid.layers.utils import flatten as flatten
from penstock.fluid.layers.utils import map_structure as map_structure
from penstock.fluid.variable import Variable as Variable

class BasicDecoder(Decoder):
    OutputWrapper: type[Any]
    def __init__(self, cell: Any, helper: Any, output_fn: Callable[..., Any] | None = ...) -> None: ...
    def initialize(self, initial_cell_states: Variable) -> tuple[Any, ...]: ...
    def step(self, time: Variable, inputs: Variable, states: Variable, **kwargs: Any) -> tuple[Any, ...]: ...
class Decoder:
    def finalize(self, outputs: Variable, final_states: Variable, sequence_lengths: Variable) -> tuple[Any, ...]: ...
    def initialize(self, inits: Any) -> tuple[Any, ...]: ...
    def step(self, time: Variable, inputs: Variable, states: Variable, **kwargs: Any) -> tuple[Any, ...]: ...
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
def dynamic_decode(decoder: Any, inits: Any = ..., max_step_num: int | None = ..., output_time_major: bool = ..., impute_finished: bool = ..., is_test: bool = ..., return_length: bool = ..., **kwargs: Any) -> tuple[Any, ...]: ...
__all__: list[str]
