# Written by tools/dev/gen_stubs.py.
# mypy: disable-error-code="override"
from typing import Any, Callable, Iterable, Iterator

from enum import IntEnum as IntEnum
from penstock.fluid.initializer import ConstantInitializer as Constant
from penstock.fluid.initializer import NormalInitializer as Normal
from penstock.fluid.layer_helper import LayerHelper as LayerHelper
from penstock.fluid.layer_helper import require_rank as require_rank
from penstock.fluid.layer_helper import require_variables as require_variables
from penstock.fluid.param_attr import ParamAttr as ParamAttr
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
def batch_norm(input: Variable, act: str | None = ..., is_test: bool = ..., momentum: float | Variable = ..., epsilon: float = ..., param_attr: ParamAttr | None = ..., bias_attr: ParamAttr | None = ..., data_layout: str = ..., in_place: bool = ..., name: str | None = ..., moving_mean_name: str | None = ..., moving_variance_name: str | None = ..., do_model_average_for_mean_and_var: bool = ..., use_global_stats: bool = ...) -> Variable: ...
def element_types(**types: Any) -> Any: ...
def group_norm(input: Variable, groups: int, epsilon: float = ..., param_attr: ParamAttr | bool | None = ..., bias_attr: ParamAttr | bool | None = ..., act: str | None = ..., data_layout: str = ..., name: str | None = ...) -> Variable: ...
def inplace_abn(input: Variable, act: str | None = ..., is_test: bool = ..., momentum: float | Variable = ..., epsilon: float = ..., param_attr: ParamAttr | None = ..., bias_attr: ParamAttr | None = ..., data_layout: str = ..., name: str | None = ..., moving_mean_name: str | None = ..., moving_variance_name: str | None = ..., do_model_average_for_mean_and_var: bool = ..., use_global_stats: bool = ..., act_alpha: float = ...) -> Variable: ...
def instance_norm(input: Variable, epsilon: float = ..., param_attr: ParamAttr | None = ..., bias_attr: ParamAttr | None = ..., name: str | None = ...) -> Variable: ...
def l2_normalize(x: Variable, axis: int | None, epsilon: float = ..., name: str | None = ...) -> Variable: ...
def layer_norm(input: Variable, scale: bool = ..., shift: bool = ..., begin_norm_axis: int = ..., epsilon: float = ..., param_attr: ParamAttr | None = ..., bias_attr: ParamAttr | None = ..., act: str | None = ..., name: str | None = ...) -> Variable: ...
def lrn(input: Variable, n: int = ..., k: float = ..., alpha: float = ..., beta: float = ..., name: str | None = ..., data_format: str = ...) -> Variable: ...
def spectral_norm(weight: Variable, dim: int = ..., power_iters: int = ..., eps: float = ..., name: str | None = ...) -> Variable: ...
__all__: list[str]
