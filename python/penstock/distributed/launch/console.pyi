# Written by tools/dev/gen_stubs.py.
# mypy: disable-error-code="override"
from typing import Any, Callable, Iterable, Iterator

class Echo:
    def __init__(self, path: Any, begin: Any = ..., prefix: Any = ...) -> None: ...
    def pump(self, last: Any = ...) -> Any: ...
