# Written by tools/dev/gen_stubs.py.
# mypy: disable-error-code="override"
from typing import Any, Callable, Iterable, Iterator

from penstock.fluid.core import dtype_name as dtype_name
from penstock.fluid.framework import Program as Program
from penstock.fluid.variable import Variable as Variable

class DataFeeder:
    def __init__(self, feed_list: list[Variable | str], place: Any, program: Program | None = ...) -> None: ...
    def decorate_reader(self, reader: Callable[..., Any], multi_devices: bool, num_places: int | None = ..., drop_last: bool = ...) -> Callable[..., Any]: ...
    def feed(self, iterable: Iterable[Any]) -> Any: ...
    def feed_parallel(self, iterable: Iterable[Any], num_places: int | None = ...) -> Iterator[Any]: ...
__all__: list[str]
