# Written by tools/dev/gen_stubs.py.
# mypy: disable-error-code="override"
from typing import Any, Callable, Iterable, Iterator

def deprecated(since: str, instead: str, extra_message: str = ...) -> Any: ...
__all__: list[str]
