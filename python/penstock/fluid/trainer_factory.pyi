# Written by tools/dev/gen_stubs.py.
# mypy: disable-error-code="override"
from typing import Any, Callable, Iterable, Iterator

from penstock.fluid.executor import FetchHandler as FetchHandler
from penstock.fluid.framework import Variable as Variable

class FetchHandlerMonitor:
    def __init__(self, scope: Any, handler: Any) -> None: ...
    def start(self) -> Any: ...
    def stop(self) -> Any: ...
class TrainerFactory:
    def __getattr__(self, name: str) -> Any: ...
__all__: list[str]
