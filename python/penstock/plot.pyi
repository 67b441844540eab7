# Written by tools/dev/gen_stubs.py.
# mypy: disable-error-code="override"
from typing import Any, Callable, Iterable, Iterator

def main(argv: list[str] | None = ...) -> int: ...
def read_progress(lines: Iterable[str]) -> list[dict[Any, Any]]: ...
__all__: list[str]
