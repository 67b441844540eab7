# Written by tools/dev/gen_stubs.py.
# mypy: disable-error-code="override"
from typing import Any, Callable, Iterable, Iterator

from penstock.fluid.framework import Variable as Variable
from penstock.fluid.optimizer import Optimizer as Optimizer

class DecoupledWeightDecay:
    def __init__(self, coeff: Any = ..., apply_decay_param_fun: Any = ..., **kwargs: Any) -> None: ...
    def minimize(self, loss: Any, startup_program: Any = ..., parameter_list: Any = ..., no_grad_set: Any = ...) -> Any: ...
def extend_with_decoupled_weight_decay(base_optimizer: type[Any]) -> type[Any]: ...
__all__: list[str]
