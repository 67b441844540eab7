# Written by tools/dev/gen_stubs.py.
# mypy: disable-error-code="override"
from typing import Any, Callable, Iterable, Iterator

def decorate(optimizer: Any, amp_lists: Any = ..., init_loss_scaling: Any = ..., incr_every_n_steps: Any = ..., decr_every_n_nan_or_inf: Any = ..., incr_ratio: Any = ..., decr_ratio: Any = ..., use_dynamic_loss_scaling: Any = ...) -> Any: ...
__all__: list[str]
