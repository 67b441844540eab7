# Written by tools/dev/gen_stubs.py.
# mypy: disable-error-code="override"
from typing import Any, Callable, Iterable, Iterator

from penstock.fluid.framework import Variable as Variable

def patch_variable() -> Any: ...
__all__: list[str]
