# Written by tools/dev/gen_stubs.py.
# mypy: disable-error-code="override"
from typing import Any, Callable, Iterable, Iterator

IDLE: Any
def explain_failure(recordings: Any, culprit: Any, words: Any) -> Any: ...
def explain_hang(recordings: Any, now: Any) -> Any: ...
