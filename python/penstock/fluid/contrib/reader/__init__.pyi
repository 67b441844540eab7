# Written by tools/dev/gen_stubs.py.
# mypy: disable-error-code="override"
from typing import Any, Callable, Iterable, Iterator

from penstock.fluid.contrib.reader import distributed_reader as distributed_reader
from penstock.fluid.contrib.reader.distributed_reader import distributed_batch_reader as distributed_batch_reader

__all__: list[str]
