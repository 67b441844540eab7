# Written by tools/dev/gen_stubs.py.
# mypy: disable-error-code="override"
from typing import Any, Callable, Iterable, Iterator

def distributed_batch_reader(batch_reader: Callable[..., Any]) -> Any: ...
__all__: list[str]
