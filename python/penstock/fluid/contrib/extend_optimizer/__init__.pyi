# Written by tools/dev/gen_stubs.py.
# mypy: disable-error-code="override"
from typing import Any, Callable, Iterable, Iterator

from penstock.fluid.contrib.extend_optimizer import extend_optimizer_with_weight_decay as extend_optimizer_with_weight_decay
from penstock.fluid.contrib.extend_optimizer.extend_optimizer_with_weight_decay import extend_with_decoupled_weight_decay as extend_with_decoupled_weight_decay

__all__: list[str]
