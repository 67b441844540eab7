# Written by tools/dev/gen_stubs.py.
# mypy: disable-error-code="override"
from typing import Any, Callable, Iterable, Iterator

from penstock.fluid.layer_helper import LayerHelper as LayerHelper
from penstock.fluid.layers.utils import convert_to_list as convert_to_list
from penstock.fluid.param_attr import ParamAttr as ParamAttr
from penstock.fluid.variable import Variable as Variable

def tree_conv(nodes_vector: Variable, edge_set: Variable, output_size: int, num_filters: int = ..., max_depth: int = ..., act: str | None = ..., param_attr: ParamAttr | None = ..., bias_attr: ParamAttr | bool | None = ..., name: str | None = ...) -> Variable: ...
def var_conv_2d(input: Variable, row: Variable, col: Variable, input_channel: int, output_channel: int, filter_size: int | list[int], stride: int | list[int] = ..., param_attr: ParamAttr | None = ..., act: str | None = ..., dtype: str = ..., name: str | None = ...) -> Variable: ...
__all__: list[str]
