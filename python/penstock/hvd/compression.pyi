# Written by tools/dev/gen_stubs.py.
# mypy: disable-error-code="override"
from typing import Any, Callable, Iterable, Iterator

class Compression:
    fp16: type[Any]
    none: type[Any]
__all__: list[str]
