# Written by tools/dev/gen_stubs.py.
# mypy: disable-error-code="override"
from typing import Any, Callable, Iterable, Iterator

from penstock.fluid.incubate.fleet.utils import fs as fs
from penstock.fluid.incubate.fleet.utils import hdfs as hdfs

__all__: list[str]
