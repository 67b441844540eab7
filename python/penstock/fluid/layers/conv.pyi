# Written by tools/dev/gen_stubs.py.
# mypy: disable-error-code="override"
from typing import Any, Callable, Iterable, Iterator

from penstock.fluid.initializer import NormalInitializer as Normal
from penstock.fluid.layer_helper import LayerHelper as LayerHelper
from penstock.fluid.layer_helper import require_variables as require_variables
from penstock.fluid.param_attr import ParamAttr as ParamAttr
from penstock.fluid.variable import Variable as Variable

class ArgumentError(ValueError, TypeError, AssertionError):
    def __getattr__(self, name: str) -> Any: ...
def conv2d(input: Variable, num_filters: int, filter_size: int | list[int], stride: int | list[int] = ..., padding: int | list[Any] | str = ..., dilation: int | list[int] = ..., groups: int | None = ..., param_attr: ParamAttr | None = ..., bias_attr: ParamAttr | bool | None = ..., use_cudnn: bool = ..., act: str | None = ..., name: str | None = ..., data_format: str = ...) -> Variable: ...
def conv2d_transpose(input: Variable, num_filters: int, output_size: int | list[int] | None = ..., filter_size: int | list[int] | None = ..., padding: int | list[Any] | str = ..., stride: int | list[int] = ..., dilation: int | list[int] = ..., groups: int | None = ..., param_attr: ParamAttr | None = ..., bias_attr: ParamAttr | bool | None = ..., use_cudnn: bool = ..., act: str | None = ..., name: str | None = ..., data_format: str = ...) -> Variable: ...
def element_types(**types: Any) -> Any: ...
def pool2d(input: Variable, pool_size: int | list[int] = ..., pool_type: str = ..., pool_stride: int | list[int] = ..., pool_padding: int | list[Any] | str = ..., global_pooling: bool = ..., use_cudnn: bool = ..., ceil_mode: bool = ..., name: str | None = ..., exclusive: bool = ..., data_format: str = ...) -> Variable: ...
__all__: list[str]
