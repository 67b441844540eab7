# Written by tools/dev/gen_stubs.py.
# mypy: disable-error-code="override"
from typing import Any, Callable, Iterable, Iterator

from penstock.fluid.incubate.fleet import base as base
from penstock.fluid.incubate.fleet import parameter_server as parameter_server
from penstock.fluid.incubate.fleet import utils as utils

__all__: list[str]
