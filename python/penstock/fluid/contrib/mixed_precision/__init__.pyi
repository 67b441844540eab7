# Written by tools/dev/gen_stubs.py.
# mypy: disable-error-code="override"
from typing import Any, Callable, Iterable, Iterator

from penstock.fluid.contrib.mixed_precision import decorator as decorator
from penstock.fluid.contrib.mixed_precision import fp16_lists as fp16_lists
from penstock.fluid.contrib.mixed_precision import fp16_utils as fp16_utils
from penstock.fluid.contrib.mixed_precision.decorator import decorate as decorate
from penstock.fluid.contrib.mixed_precision.fp16_lists import AutoMixedPrecisionLists as AutoMixedPrecisionLists

__all__: list[str]
