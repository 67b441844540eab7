# Written by tools/dev/gen_stubs.py.
# mypy: disable-error-code="override"
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any

from numpy import dtype
from numpy.typing import NDArray

from penstock._src.ir.types import VarType as VarType
from penstock.fluid.framework import Variable as Variable
from penstock.fluid.layer_helper import LayerHelper as LayerHelper
from penstock.fluid.param_attr import ParamAttr as ParamAttr

def embedding(input: Variable, size: Sequence[int], is_sparse: bool = ..., is_distributed: bool = ..., padding_idx: int | None = ..., param_attr: ParamAttr | None = ..., dtype: str | VarType = ...) -> Variable: ...
def one_hot(input: Variable, depth: int | Variable, allow_out_of_range: bool = ...) -> Variable: ...
__all__: list[str]
