# Written by tools/dev/gen_stubs.py.
# mypy: disable-error-code="override"
from typing import Any, Callable, Iterable, Iterator

from penstock.fluid.framework import Program as Program
from penstock.fluid.transpiler.distribute_transpiler import DistributeTranspiler as DistributeTranspiler

class GeoSgdTranspiler(DistributeTranspiler):
    def transpile(self, trainer_id: int, program: Program | None = ..., pservers: str | list[str] = ..., trainers: int = ..., sync_mode: bool = ..., startup_program: Program | None = ..., current_endpoint: str = ...) -> Any: ...
__all__: list[str]
