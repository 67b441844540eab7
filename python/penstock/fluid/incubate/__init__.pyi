# Written by tools/dev/gen_stubs.py.
# mypy: disable-error-code="override"
from typing import Any, Callable, Iterable, Iterator

from penstock.fluid.incubate import data_generator as data_generator
from penstock.fluid.incubate import fleet as fleet

__all__: list[str]
