# Written by tools/dev/gen_stubs.py.
# mypy: disable-error-code="override"
from typing import Any, Callable, Iterable, Iterator

from penstock.fluid.framework import Program as Program

class BuildStrategy:
    GradientScaleStrategy: type[Any]
    ReduceStrategy: type[Any]
    def __init__(self) -> None: ...
class CompiledProgram:
    def __init__(self, program_or_graph: Program, build_strategy: Any = ...) -> None: ...
    def batches(self, feeds: Callable[..., Any]) -> Iterator[dict[Any, Any]]: ...
    def with_data_parallel(self, loss_name: str | None = ..., build_strategy: Any = ..., exec_strategy: Any = ..., share_vars_from: CompiledProgram | None = ..., places: Any = ...) -> CompiledProgram: ...
class ExecutionStrategy:
    def __init__(self) -> None: ...
__all__: list[str]
