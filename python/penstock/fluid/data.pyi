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

def data(name: str, shape: Sequence[int | None], dtype: str | VarType = ..., lod_level: int = ...) -> Variable: ...
__all__: list[str]
