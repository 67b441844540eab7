# Written by tools/dev/gen_stubs.py.
# mypy: disable-error-code="override"
from typing import Any, Callable, Iterable, Iterator

from penstock.fluid.layer_helper import LayerHelper as LayerHelper
from penstock.fluid.layer_helper import require_rank as require_rank
from penstock.fluid.param_attr import ParamAttr as ParamAttr
from penstock.fluid.variable import Variable as Variable

def chunk_eval(input: Variable, label: Variable, chunk_scheme: str, num_chunk_types: int, excluded_chunk_types: list[int] | None = ..., seq_length: Variable | None = ...) -> tuple[Any, ...]: ...
def element_types(**types: Any) -> Any: ...
def linear_chain_crf(input: Variable, label: Variable, param_attr: ParamAttr | None = ..., length: Variable | None = ...) -> Variable: ...
def warpctc(input: Variable, label: Variable, blank: int = ..., norm_by_times: bool = ..., input_length: Variable | None = ..., label_length: Variable | None = ...) -> Variable: ...
__all__: list[str]
