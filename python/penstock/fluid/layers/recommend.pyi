# Written by tools/dev/gen_stubs.py.
# mypy: disable-error-code="override"
from typing import Any, Callable, Iterable, Iterator

from penstock.fluid.initializer import ConstantInitializer as Constant
from penstock.fluid.layer_helper import LayerHelper as LayerHelper
from penstock.fluid.param_attr import ParamAttr as ParamAttr
from penstock.fluid.variable import Variable as Variable

def continuous_value_model(input: Variable, cvm: Variable, use_cvm: bool = ...) -> Variable: ...
def data_norm(input: Variable, act: str | None = ..., epsilon: float = ..., param_attr: dict[Any, Any] | None = ..., data_layout: str = ..., in_place: bool = ..., name: str | None = ..., moving_mean_name: str | None = ..., moving_variance_name: str | None = ..., do_model_average_for_mean_and_var: bool = ..., slot_dim: int = ..., sync_stats: bool = ..., summary_decay_rate: float = ..., enable_scale_and_shift: bool = ...) -> Variable: ...
def element_types(**types: Any) -> Any: ...
def filter_by_instag(ins: Variable, ins_tag: Variable, filter_tag: Variable, is_lod: bool, out_val_if_empty: int = ...) -> list[Any]: ...
__all__: list[str]
