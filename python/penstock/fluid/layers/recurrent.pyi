# Written by tools/dev/gen_stubs.py.
# mypy: disable-error-code="override"
from typing import Any, Callable, Iterable, Iterator

from enum import IntEnum as IntEnum
from penstock.fluid.layer_helper import LayerHelper as LayerHelper
from penstock.fluid.layer_helper import require_rank as require_rank
from penstock.fluid.layers.nn import fc as fc
from penstock.fluid.layers.tensor import concat as concat
from penstock.fluid.param_attr import ParamAttr as ParamAttr
from penstock.fluid.variable import Variable as Variable

ACTIVATION_NUMBERS: Any
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
def beam_search(pre_ids: Variable, pre_scores: Variable, ids: Variable | None, scores: Variable, beam_size: int, end_id: int, level: int = ..., is_accumulated: bool = ..., name: str | None = ..., return_parent_idx: bool = ...) -> tuple[Any, ...]: ...
def dynamic_gru(input: Variable, size: int, param_attr: ParamAttr | None = ..., bias_attr: ParamAttr | bool | None = ..., is_reverse: bool = ..., gate_activation: str = ..., candidate_activation: str = ..., h_0: Variable | None = ..., origin_mode: bool = ...) -> Variable: ...
def dynamic_lstm(input: Variable, size: int, h_0: Variable | None = ..., c_0: Variable | None = ..., param_attr: ParamAttr | None = ..., bias_attr: ParamAttr | None = ..., use_peepholes: bool = ..., is_reverse: bool = ..., gate_activation: str = ..., cell_activation: str = ..., candidate_activation: str = ..., dtype: Any = ..., name: str | None = ...) -> Any: ...
def dynamic_lstmp(input: Variable, size: int, proj_size: int, param_attr: ParamAttr | None = ..., bias_attr: ParamAttr | None = ..., use_peepholes: bool = ..., is_reverse: bool = ..., gate_activation: str = ..., cell_activation: str = ..., candidate_activation: str = ..., proj_activation: str = ..., dtype: Any = ..., name: str | None = ..., h_0: Variable | None = ..., c_0: Variable | None = ..., cell_clip: float | None = ..., proj_clip: float | None = ...) -> Any: ...
def element_types(**types: Any) -> Any: ...
def gru_unit(input: Variable, hidden: Variable, size: int, param_attr: ParamAttr | None = ..., bias_attr: ParamAttr | bool | None = ..., activation: str = ..., gate_activation: str = ..., origin_mode: bool = ...) -> Any: ...
def lstm(input: Variable, init_h: Variable, init_c: Variable, max_len: int, hidden_size: int, num_layers: int, dropout_prob: float = ..., is_bidirec: bool = ..., is_test: bool = ..., name: str | None = ..., default_initializer: Any = ..., seed: int = ...) -> tuple[Any, ...]: ...
def lstm_unit(x_t: Variable, hidden_t_prev: Variable, cell_t_prev: Variable, forget_bias: float = ..., param_attr: ParamAttr | None = ..., bias_attr: ParamAttr | None = ..., name: str | None = ...) -> Any: ...
__all__: list[str]
