# Written by tools/dev/gen_stubs.py.
# mypy: disable-error-code="override"
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any

from numpy import dtype
from numpy.typing import NDArray

from penstock.fluid.executor import Executor as Executor
from penstock.fluid.framework import Program as Program
from penstock.fluid.framework import Variable as Variable
from penstock.fluid.framework import program_guard as program_guard
from penstock.fluid.layer_helper import LayerHelper as LayerHelper
from penstock.fluid.metrics import DetectionMAP as DetectionMAP

class ChunkEvaluator(Evaluator):
    def __init__(self, input: Variable, label: Variable, chunk_scheme: str, num_chunk_types: int, excluded_chunk_types: Sequence[Any] | None = ...) -> None: ...
    def eval(self, executor: Executor, eval_program: Program | None = ...) -> tuple[Any, ...]: ...
class EditDistance(Evaluator):
    def __init__(self, input: Variable, label: Variable, ignored_tokens: Sequence[int] | None = ..., **kwargs: Any) -> None: ...
    def eval(self, executor: Executor, eval_program: Program | None = ...) -> tuple[Any, ...]: ...
class Evaluator:
    def __init__(self, name: str, **kwargs: Any) -> None: ...
    def eval(self, executor: Executor, eval_program: Program | None = ...) -> None: ...
    def reset(self, executor: Executor, reset_program: Program | None = ...) -> None: ...
__all__: list[str]
