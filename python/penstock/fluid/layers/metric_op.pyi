# Written by tools/dev/gen_stubs.py.
# mypy: disable-error-code="override"
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any

from numpy import dtype
from numpy.typing import NDArray

from penstock.fluid.framework import Variable as Variable
from penstock.fluid.initializer import ConstantInitializer as Constant
from penstock.fluid.layer_helper import LayerHelper as LayerHelper

def accuracy(input: Variable, label: Variable, k: int = ..., correct: Variable | None = ..., total: Variable | None = ...) -> Variable: ...
def auc(input: Variable, label: Variable, curve: str = ..., num_thresholds: int = ..., topk: int = ..., slide_steps: int = ...) -> tuple[Any, ...]: ...
__all__: list[str]
