# Written by tools/dev/gen_stubs.py.
# mypy: disable-error-code="override"
from typing import Any, Callable, Iterable, Iterator

from penstock.fluid.layer_helper import LayerHelper as LayerHelper
from penstock.fluid.variable import Variable as Variable

def py_func(func: Callable[..., Any], x: Variable | list[Variable] | None, out: Variable | list[Variable] | None, backward_func: Callable[..., Any] | None = ..., skip_vars_in_backward_input: list[Variable] | None = ...) -> Any: ...
__all__: list[str]
