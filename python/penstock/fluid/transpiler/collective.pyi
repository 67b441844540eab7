# Written by tools/dev/gen_stubs.py.
# mypy: disable-error-code="override"
from typing import Any, Callable, Iterable, Iterator

from penstock.fluid.framework import Program as Program

class Collective:
    def __init__(self, nrings: Any) -> None: ...
    collective_mode: Any
    def transpile(self, startup_program: Program | None, main_program: Program | None, rank: int, endpoints: str | list[str], current_endpoint: str, wait_port: bool) -> Any: ...
class GradAllReduce(Collective):
    def __init__(self, nrings: int = ...) -> None: ...
    collective_mode: Any
class LocalSGD(Collective):
    def __init__(self, nrings: int = ..., k_steps: int = ..., adaptive: bool = ...) -> None: ...
    collective_mode: Any
    snapshot_key: Any
    def snapshot_name(self, param_name: str) -> str: ...
class SingleProcessMultiThread(GradAllReduce):
    def __init__(self) -> None: ...
    collective_mode: Any
__all__: list[str]
