# Written by tools/dev/gen_stubs.py.
# mypy: disable-error-code="override"
from typing import Any, Callable, Iterable, Iterator

from penstock.distributed.launch.completion import completion_text as completion_text
from penstock.distributed.launch.safety import add_safety_options as add_safety_options

AFTER_SCRIPT: Any
NAME: str
SECONDS_MAX: float
def make_parser() -> Any: ...
def parse_options(argv: Any) -> Any: ...
