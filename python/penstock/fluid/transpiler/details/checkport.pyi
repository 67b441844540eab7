# Written by tools/dev/gen_stubs.py.
# mypy: disable-error-code="override"
from typing import Any, Callable, Iterable, Iterator

def wait_server_ready(endpoints: list[str]) -> Any: ...
__all__: list[str]
