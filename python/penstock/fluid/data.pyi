# Written by tools/dev/gen_stubs.py.
# mypy: disable-error-code="override"
from typing import Any, Callable, Iterable, Iterator

from penstock.fluid.framework import Variable as Variable
from penstock.fluid.layer_helper import LayerHelper as LayerHelper

def data(name: str, shape: list[int | None], dtype: Any = ..., lod_level: int = ...) -> Variable: ...
__all__: list[str]
