# Written by tools/dev/gen_stubs.py.
# mypy: disable-error-code="override"
from typing import Any, Callable, Iterable, Iterator

from penstock.fluid.layer_helper import LayerHelper as LayerHelper

__all__: list[str]
