# Written by tools/dev/gen_stubs.py.
# mypy: disable-error-code="override"
from typing import Any, Callable, Iterable, Iterator

from penstock.distributed.launch.errors import JobError as JobError
from penstock.distributed.launch.errors import is_loopback as is_loopback
from penstock.distributed.launch.errors import split as split

class Topology:
    def __init__(self, nodes: Any, rank: Any, here: Any, addressed: Any = ..., port: Any = ...) -> None: ...
    addressed: Any
    def on_loopback(self) -> Any: ...
    port: Any
def expand_nodelist(text: Any) -> Any: ...
def find_topology(options: Any, environment: Any) -> Any: ...
