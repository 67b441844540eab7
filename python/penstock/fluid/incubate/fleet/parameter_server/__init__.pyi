# Written by tools/dev/gen_stubs.py.
# mypy: disable-error-code="override"
from typing import Any, Callable, Iterable, Iterator

from penstock.fluid.incubate.fleet.parameter_server import distribute_transpiler as distribute_transpiler
from penstock.fluid.incubate.fleet.parameter_server import version as version

__all__: list[str]
