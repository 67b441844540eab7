# Written by tools/dev/gen_stubs.py.
# mypy: disable-error-code="override"
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any

from numpy import dtype
from numpy.typing import NDArray

from penstock.fluid.framework import Variable as Variable
from penstock.fluid.param_attr import ParamAttr as ParamAttr

def glu(input: Variable, dim: int = ...) -> Variable: ...
def img_conv_group(input: Variable, conv_num_filter: Sequence[int], pool_size: int | Sequence[int], conv_padding: int | Sequence[int] = ..., conv_filter_size: int | Sequence[int] = ..., conv_act: str | None = ..., param_attr: ParamAttr | Sequence[Any] | None = ..., conv_with_batchnorm: bool | Sequence[bool] = ..., conv_batchnorm_drop_rate: float | Sequence[float] = ..., pool_stride: int | Sequence[int] = ..., pool_type: str = ..., use_cudnn: bool = ...) -> Variable: ...
def scaled_dot_product_attention(queries: Variable, keys: Variable, values: Variable, num_heads: int = ..., dropout_rate: float = ...) -> Variable: ...
def sequence_conv_pool(input: Variable, num_filters: int, filter_size: int, param_attr: ParamAttr | None = ..., act: str | None = ..., pool_type: str = ..., bias_attr: ParamAttr | bool | None = ...) -> Variable: ...
def simple_img_conv_pool(input: Variable, num_filters: int, filter_size: int | Sequence[int], pool_size: int | Sequence[int], pool_stride: int | Sequence[int], pool_padding: int | Sequence[int] = ..., pool_type: str = ..., global_pooling: bool = ..., conv_stride: int | Sequence[int] = ..., conv_padding: int | Sequence[int] = ..., conv_dilation: int | Sequence[int] = ..., conv_groups: int = ..., param_attr: ParamAttr | None = ..., bias_attr: ParamAttr | bool | None = ..., act: str | None = ..., use_cudnn: bool = ...) -> Variable: ...
__all__: list[str]
