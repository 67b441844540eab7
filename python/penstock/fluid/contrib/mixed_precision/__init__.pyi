# Written by tools/dev/gen_stubs.py.
# mypy: disable-error-code="override"
from typing import Any, Callable, Iterable, Iterator

from penstock.fluid.contrib.mixed_precision import decorator as decorator
from penstock.fluid.contrib.mixed_precision.decorator import decorate as decorate

__all__: list[str]
