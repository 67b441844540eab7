# Written by tools/dev/gen_stubs.py.
# mypy: disable-error-code="override"
from typing import Any, Callable, Iterable, Iterator

from penstock.fluid.layer_helper import LayerHelper as LayerHelper
from penstock.fluid.layer_helper import require_variables as require_variables
from penstock.fluid.layers.conv import conv2d as conv2d
from penstock.fluid.layers.nn import flatten as flatten
from penstock.fluid.layers.nn import reshape as reshape
from penstock.fluid.layers.nn import transpose as transpose
from penstock.fluid.layers.tensor import concat as concat
from penstock.fluid.variable import Variable as Variable

def anchor_generator(input: Variable, anchor_sizes: list[Any] | float | None = ..., aspect_ratios: list[Any] | float | None = ..., variance: list[Any] = ..., stride: list[Any] | None = ..., offset: float = ..., name: str | None = ...) -> tuple[Any, ...]: ...
def density_prior_box(input: Variable, image: Variable, densities: list[Any] | None = ..., fixed_sizes: list[Any] | None = ..., fixed_ratios: list[Any] | None = ..., variance: list[Any] = ..., clip: bool = ..., steps: list[Any] = ..., offset: float = ..., flatten_to_2d: bool = ..., name: str | None = ...) -> tuple[Any, ...]: ...
def multi_box_head(inputs: list[Any], image: Variable, base_size: int, num_classes: int, aspect_ratios: list[Any], min_ratio: int | None = ..., max_ratio: int | None = ..., min_sizes: list[Any] | None = ..., max_sizes: list[Any] | None = ..., steps: list[Any] | None = ..., step_w: list[Any] | None = ..., step_h: list[Any] | None = ..., offset: float = ..., variance: list[Any] = ..., flip: bool = ..., clip: bool = ..., kernel_size: int = ..., pad: int = ..., stride: int = ..., name: str | None = ..., min_max_aspect_ratios_order: bool = ...) -> tuple[Any, ...]: ...
def prior_box(input: Variable, image: Variable, min_sizes: list[Any] | float, max_sizes: list[Any] | None = ..., aspect_ratios: list[Any] | float = ..., variance: list[Any] = ..., flip: bool = ..., clip: bool = ..., steps: list[Any] = ..., offset: float = ..., name: str | None = ..., min_max_aspect_ratios_order: bool = ...) -> tuple[Any, ...]: ...
__all__: list[str]
