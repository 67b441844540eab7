# Written by tools/dev/gen_stubs.py.
# mypy: disable-error-code="override"
from typing import Any, Callable, Iterable, Iterator

class AutoMixedPrecisionLists:
    def __init__(self, custom_white_list: set[Any] | None = ..., custom_black_list: set[Any] | None = ..., custom_black_varnames: set[Any] | None = ...) -> None: ...
black_list: Any
gray_list: Any
white_list: Any
__all__: list[str]
