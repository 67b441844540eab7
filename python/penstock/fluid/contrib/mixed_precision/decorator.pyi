# Written by tools/dev/gen_stubs.py.
# mypy: disable-error-code="override"
from typing import Any, Callable, Iterable, Iterator

def decorate(optimizer: Any, amp_lists: Any = ..., init_loss_scaling: float = ..., incr_every_n_steps: int = ..., decr_every_n_nan_or_inf: int = ..., incr_ratio: float = ..., decr_ratio: float = ..., use_dynamic_loss_scaling: bool = ...) -> Any: ...
__all__: list[str]
