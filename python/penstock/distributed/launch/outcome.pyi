# Written by tools/dev/gen_stubs.py.
# mypy: disable-error-code="override"
from typing import Any, Callable, Iterable, Iterator

ENDED: str
class Failure:
    def __init__(self, node: Any, who: Any, words: Any, kind: Any, log: Any = ..., lines: Any = ..., role: Any = ..., outcome: Any = ..., note: Any = ..., stopped: Any = ...) -> None: ...
    lines: Any
    log: Any
    note: Any
    outcome: Any
    role: Any
    stopped: Any
JOB: str
NOTE_MAX: int
class Notes:
    def __init__(self) -> None: ...
    def close_ours(self) -> Any: ...
    def environment(self) -> Any: ...
    def read(self) -> Any: ...
OWN: str
REACTED: str
class Told:
    def __init__(self, met: Any = ..., note: Any = ..., reacted: Any = ...) -> None: ...
    met: Any
    note: Any
    reacted: Any
