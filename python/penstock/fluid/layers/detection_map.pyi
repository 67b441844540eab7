# Written by tools/dev/gen_stubs.py.
# mypy: disable-error-code="override"
from typing import Any, Callable, Iterable, Iterator

from penstock.fluid.layer_helper import LayerHelper as LayerHelper
from penstock.fluid.variable import Variable as Variable

def detection_map(detect_res: Variable, label: Variable, class_num: int, background_label: int = ..., overlap_threshold: float = ..., evaluate_difficult: bool = ..., has_state: Variable | None = ..., input_states: list[Any] | None = ..., out_states: list[Any] | None = ..., ap_version: str = ...) -> Variable: ...
__all__: list[str]
