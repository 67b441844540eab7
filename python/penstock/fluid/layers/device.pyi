# Written by tools/dev/gen_stubs.py.
# mypy: disable-error-code="override"
from typing import Any, Callable, Iterable, Iterator

def get_places(device_count: int | None = ..., device_type: str | None = ...) -> Any: ...
__all__: list[str]
