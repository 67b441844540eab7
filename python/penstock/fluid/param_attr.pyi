# Written by tools/dev/gen_stubs.py.
# mypy: disable-error-code="override"
from typing import Any, Callable, Iterable, Iterator

from penstock.fluid.initializer import ConstantInitializer as Constant
from penstock.fluid.initializer import Initializer as Initializer
from penstock.fluid.initializer import XavierInitializer as Xavier
from penstock.fluid.regularizer import WeightDecayRegularizer as WeightDecayRegularizer

class ParamAttr:
    def __init__(self, name: str | None = ..., initializer: Any = ..., learning_rate: float = ..., regularizer: Any = ..., trainable: bool = ..., do_model_average: bool = ...) -> None: ...
class WeightNormParamAttr(ParamAttr):
    def __init__(self, dim: int | None = ..., name: str | None = ..., initializer: Any = ..., learning_rate: float = ..., regularizer: Any = ..., trainable: bool = ..., do_model_average: bool = ...) -> None: ...
    params_with_weight_norm: Any
__all__: list[str]
