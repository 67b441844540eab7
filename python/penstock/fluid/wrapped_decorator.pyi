# Written by tools/dev/gen_stubs.py.
# mypy: disable-error-code="override"
from typing import Any, Callable, Iterable, Iterator

def wrap_decorator(decorator_func: Callable[..., Any]) -> Any: ...
__all__: list[str]
