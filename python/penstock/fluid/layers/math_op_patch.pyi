# Written by tools/dev/gen_stubs.py.
# mypy: disable-error-code="override"
from typing import Any, Callable, Iterable, Iterator

from penstock.fluid.core import VarType as VarType
from penstock.fluid.layers.indexing import subscript as subscript
from penstock.fluid.variable import Variable as Variable

def patch_variable() -> Any: ...
