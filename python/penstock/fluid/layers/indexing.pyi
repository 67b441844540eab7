# Written by tools/dev/gen_stubs.py.
# mypy: disable-error-code="override"
from typing import Any, Callable, Iterable, Iterator

from penstock.fluid.core import VarType as VarType
from penstock.fluid.core import dtype_name as dtype_name
from penstock.fluid.variable import Variable as Variable

def subscript(var: Any, item: Any) -> Any: ...
