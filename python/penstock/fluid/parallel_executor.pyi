# Written by tools/dev/gen_stubs.py.
# mypy: disable-error-code="override"
from typing import Any, Callable, Iterable, Iterator

from penstock.fluid.compiler import BuildStrategy as BuildStrategy
from penstock.fluid.compiler import CompiledProgram as CompiledProgram
from penstock.fluid.compiler import ExecutionStrategy as ExecutionStrategy
from penstock.fluid.framework import Program as Program

class ParallelExecutor:
    def __init__(self, use_cuda: bool, loss_name: str | None = ..., main_program: Program | None = ..., share_vars_from: Any = ..., exec_strategy: Any = ..., build_strategy: Any = ..., num_trainers: int = ..., trainer_id: int = ..., scope: Any = ...) -> None: ...
    def batches(self, feeds: Callable[..., Any]) -> Iterator[dict[Any, Any]]: ...
    @property
    def device_count(self) -> Any: ...
    def drop_local_exe_scopes(self) -> Any: ...
    def run(self, fetch_list: list[Any], feed: dict[Any, Any] | list[Any] | None = ..., feed_dict: dict[Any, Any] | None = ..., return_numpy: bool = ...) -> list[Any]: ...
__all__: list[str]
