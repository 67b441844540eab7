# Written by tools/dev/gen_stubs.py.
# mypy: disable-error-code="override"
from typing import Any, Callable, Iterable, Iterator

from penstock.distributed.launch.logs import remove as remove

MERGED: str
def clear(folder: Any) -> Any: ...
def merge(folder: Any, rank: Any) -> Any: ...
