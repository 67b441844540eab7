# Written by tools/dev/gen_stubs.py.
# mypy: disable-error-code="override"
from typing import Any, Callable, Iterable, Iterator

from penstock.distributed.launch.outcome import Failure as Failure

class Cause:
    def __init__(self, failure: Any, role: Any = ..., words: Any = ..., sentence: Any = ...) -> None: ...
    role: Any
    sentence: Any
    words: Any
ENDED: str
OWN: str
REACTED: str
def find_cause(failures: Any, pservers: Any, trainers: Any) -> Any: ...
def named_in(note: Any, pservers: Any) -> Any: ...
