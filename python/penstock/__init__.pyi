# Written by tools/dev/gen_stubs.py.
# mypy: disable-error-code="override"
from typing import Any, Callable, Iterable, Iterator

from penstock import compat as compat
from penstock import distributed as distributed
from penstock import fluid as fluid
from penstock import hvd as hvd
from penstock.fluid.framework import Program as Program

class DataError(ValueError):
    def __getattr__(self, name: str) -> Any: ...
class EOFException(Exception):
    def __getattr__(self, name: str) -> Any: ...
class InternalError(Exception):
    def __getattr__(self, name: str) -> Any: ...
class PeerError(ConnectionError):
    def __getattr__(self, name: str) -> Any: ...
class ProgramError(ValueError, TypeError):
    def __getattr__(self, name: str) -> Any: ...
class ProgramWarning(UserWarning):
    def __getattr__(self, name: str) -> Any: ...
class Role(tuple[Any, ...]):
    main: Any
    startup: Any
class RoleSet(tuple[Any, ...]):
    plan: Any
    pservers: Any
    trainers: Any
class StateError(RuntimeError):
    def __getattr__(self, name: str) -> Any: ...
__version__: str
def transpile(main: Program | list[Program], startup: Program | list[Program], pservers: str | list[str], trainers: int | str | list[str] = ..., trainer_ids: list[int] | None = ..., sync: bool = ..., slice_params: bool = ..., min_block_size: int = ..., placement: str | type[Any] = ..., slicing: str = ..., big_array_bound: int = ..., compat: str | None = ..., runtime_split_send_recv: bool = ..., half_async: bool = ..., completely_not_async: bool = ..., dc_asgd: bool = ..., dc_asgd_lambda: float = ..., staleness: int | None = ..., backup_trainers: int = ..., compression: str = ..., exchange: dict[Any, Any] | str | None = ..., rings: int = ..., exchange_gbit: float = ..., exchange_message_us: float = ..., on_uneven: str = ..., clip: str = ..., bn_sync: str = ..., chunk_bytes: int = ...) -> Any: ...
def transpile_ranks(main: Program, startup: Program, trainers: str | list[str], exchange: str = ..., rings: int = ..., node_ranks: int = ..., k_steps: int = ..., trainer_ids: list[int] | None = ..., compat: str | None = ..., adaptive: bool = ..., on_uneven: str = ...) -> Any: ...
__all__: list[str]
