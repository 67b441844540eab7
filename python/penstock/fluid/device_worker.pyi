# Written by tools/dev/gen_stubs.py.
# mypy: disable-error-code="override"
from typing import Any, Callable, Iterable, Iterator

from penstock.fluid.framework import Program as Program

DOWNPOUR: Any
class DeviceWorker:
    def __init__(self) -> None: ...
class DeviceWorkerFactory:
    def __getattr__(self, name: str) -> Any: ...
class Hogwild(DeviceWorker):
    def __getattr__(self, name: str) -> Any: ...
NO_PSLIB: str
class Section(DeviceWorker):
    def __getattr__(self, name: str) -> Any: ...
__all__: list[str]
