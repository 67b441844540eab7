# Written by tools/dev/gen_stubs.py.
# mypy: disable-error-code="override"
from typing import Any, Callable, Iterable, Iterator

from penstock.fluid.layer_helper import LayerHelper as LayerHelper
from penstock.fluid.layers.nn import lookup_layer as lookup_layer
from penstock.fluid.param_attr import ParamAttr as ParamAttr
from penstock.fluid.variable import Variable as Variable

def element_types(**types: Any) -> Any: ...
def embedding(input: Variable, size: list[int], is_sparse: bool = ..., is_distributed: bool = ..., padding_idx: int | None = ..., param_attr: ParamAttr | None = ..., dtype: Any = ...) -> Variable: ...
def getattr_of(module: Any) -> Any: ...
def one_hot(input: Variable, depth: int | Variable, allow_out_of_range: bool = ...) -> Variable: ...
__all__: list[str]
