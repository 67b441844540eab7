# Written by tools/dev/gen_stubs.py.
# mypy: disable-error-code="override"
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any

from numpy import dtype
from numpy.typing import NDArray

def get_places(device_count: int | None = ..., device_type: str | None = ...) -> None: ...
__all__: list[str]
