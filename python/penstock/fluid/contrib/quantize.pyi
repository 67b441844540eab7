# Written by tools/dev/gen_stubs.py.
# mypy: disable-error-code="override"
from typing import Any, Callable, Iterable, Iterator

class QuantizeTranspiler:
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...
__all__: list[str]
