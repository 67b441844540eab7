# Written by tools/dev/gen_stubs.py.
# mypy: disable-error-code="override"
from typing import Any, Callable, Iterable, Iterator

from penstock.fluid.incubate.fleet.base import fleet_base as fleet_base
from penstock.fluid.incubate.fleet.base import mode as mode
from penstock.fluid.incubate.fleet.base import role_maker as role_maker

__all__: list[str]
