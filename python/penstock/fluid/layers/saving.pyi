# Written by tools/dev/gen_stubs.py.
# mypy: disable-error-code="override"
from typing import Any, Callable, Iterable, Iterator

from penstock.fluid.layer_helper import LayerHelper as LayerHelper
from penstock.fluid.variable import Variable as Variable

def load_combine(out: list[Variable], file_path: str) -> Any: ...
def save(x: Variable, file_path: str, overwrite: bool = ...) -> Any: ...
def save_combine(x: list[Variable], file_path: str, overwrite: bool = ...) -> Any: ...
__all__: list[str]
