# Written by tools/dev/gen_stubs.py.
# mypy: disable-error-code="override"
from typing import Any, Callable, Iterable, Iterator

from penstock.fluid.layer_helper import LayerHelper as LayerHelper
from penstock.fluid.layer_helper import require_name as require_name
from penstock.fluid.variable import Variable as Variable

def data(name: str, shape: list[int | None], dtype: Any = ..., lod_level: int = ...) -> Variable: ...
__all__: list[str]
