# Written by tools/dev/gen_stubs.py.
# mypy: disable-error-code="override"
from typing import Any, Callable, Iterable, Iterator

class L1Decay(WeightDecayRegularizer):
    kind: Any
class L1DecayRegularizer(WeightDecayRegularizer):
    kind: Any
class L2Decay(WeightDecayRegularizer):
    kind: Any
class L2DecayRegularizer(WeightDecayRegularizer):
    kind: Any
class WeightDecayRegularizer:
    def __init__(self, regularization_coeff: Any = ...) -> None: ...
    @property
    def coefficient(self) -> Any: ...
    kind: Any
def append_regularization_ops(parameters_and_grads: list[tuple[Any, ...]], regularization: Any = ...) -> list[tuple[Any, ...]]: ...
def regularizers_in(program: Any) -> Any: ...
__all__: list[str]
