# Written by tools/dev/gen_stubs.py.
# mypy: disable-error-code="override"
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any

from numpy import dtype
from numpy.typing import NDArray

from penstock.fluid.layers.ops import abs as abs
from penstock.fluid.layers.ops import acos as acos
from penstock.fluid.layers.ops import asin as asin
from penstock.fluid.layers.ops import atan as atan
from penstock.fluid.layers.ops import ceil as ceil
from penstock.fluid.layers.ops import cos as cos
from penstock.fluid.layers.ops import exp as exp
from penstock.fluid.layers.ops import floor as floor
from penstock.fluid.layers.ops import logsigmoid as logsigmoid
from penstock.fluid.layers.ops import reciprocal as reciprocal
from penstock.fluid.layers.ops import round as round
from penstock.fluid.layers.ops import rsqrt as rsqrt
from penstock.fluid.layers.ops import sigmoid as sigmoid
from penstock.fluid.layers.ops import sin as sin
from penstock.fluid.layers.ops import softplus as softplus
from penstock.fluid.layers.ops import softsign as softsign
from penstock.fluid.layers.ops import sqrt as sqrt
from penstock.fluid.layers.ops import square as square
from penstock.fluid.layers.ops import tanh as tanh
from penstock.fluid.layers.ops import tanh_shrink as tanh_shrink

def autodoc(comment: str = ...) -> Callable[..., Any]: ...
def deprecated(func_or_class: Callable[..., Any]) -> Callable[..., Any]: ...
def generate_activation_fn(op_type: str) -> Callable[..., Any]: ...
def generate_layer_fn(op_type: str) -> Callable[..., Any]: ...
def templatedoc(op_type: str | None = ...) -> Callable[..., Any]: ...
__all__: list[str]
