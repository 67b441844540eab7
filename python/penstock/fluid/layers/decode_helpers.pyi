# Written by tools/dev/gen_stubs.py.
# mypy: disable-error-code="override"
from typing import Any, Callable, Iterable, Iterator

from enum import IntEnum as IntEnum
from penstock.fluid.layers.control_flow import equal as equal
from penstock.fluid.layers.control_flow import less_equal as less_equal
from penstock.fluid.layers.draws import sampling_id as sampling_id
from penstock.fluid.layers.utils import map_structure as map_structure
from penstock.fluid.variable import Variable as Variable

class DecodeHelper:
    def initialize(self) -> tuple[Any, ...]: ...
    def next_inputs(self, time: Variable, outputs: Variable, states: Variable, sample_ids: Variable) -> tuple[Any, ...]: ...
    def sample(self, time: Variable, outputs: Variable, states: Variable) -> Variable: ...
class GreedyEmbeddingHelper(DecodeHelper):
    def __init__(self, embedding_fn: Callable[..., Any], start_tokens: Variable, end_token: int) -> None: ...
    def initialize(self) -> tuple[Any, ...]: ...
    def next_inputs(self, time: Variable, outputs: Variable, states: Variable, sample_ids: Variable) -> tuple[Any, ...]: ...
    def sample(self, time: Variable, outputs: Variable, states: Variable) -> Variable: ...
class SampleEmbeddingHelper(GreedyEmbeddingHelper):
    def __init__(self, embedding_fn: Callable[..., Any], start_tokens: Variable, end_token: int, softmax_temperature: float | None = ..., seed: int | None = ...) -> None: ...
    def sample(self, time: Variable, outputs: Variable, states: Variable) -> Variable: ...
class TrainingHelper(DecodeHelper):
    def __init__(self, inputs: Variable, sequence_length: Variable, time_major: bool = ...) -> None: ...
    def initialize(self) -> tuple[Any, ...]: ...
    def next_inputs(self, time: Variable, outputs: Variable, states: Variable, sample_ids: Variable) -> tuple[Any, ...]: ...
    def sample(self, time: Variable, outputs: Variable, states: Variable) -> Variable: ...
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
__all__: list[str]
