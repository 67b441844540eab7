# Written by tools/dev/gen_stubs.py.
# mypy: disable-error-code="override"
from typing import Any, Callable, Iterable, Iterator

def get_logger(name: str, level: int, fmt: str | None = ...) -> Any: ...
__all__: list[str]
