# Written by tools/dev/gen_stubs.py.
# mypy: disable-error-code="override"
from typing import Any, Callable, Iterable, Iterator

from penstock.distributed.launch.logs import say as say

class Echo:
    def __init__(self, path: Any, begin: Any = ..., prefix: Any = ...) -> None: ...
    def pump(self, last: Any = ...) -> Any: ...
