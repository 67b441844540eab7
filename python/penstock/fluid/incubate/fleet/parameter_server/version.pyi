# Written by tools/dev/gen_stubs.py.
# mypy: disable-error-code="override"
from typing import Any, Callable, Iterable, Iterator

from penstock.fluid.incubate.fleet.base.mode import Mode as Mode

BUILD_MODE: int
def is_transpiler() -> bool: ...
__all__: list[str]
