# Written by tools/dev/gen_stubs.py.
# mypy: disable-error-code="override"
from typing import Any, Callable, Iterable, Iterator

from penstock.fluid.framework import Program as Program
from penstock.fluid.framework import Variable as Variable

class DistributeTranspiler:
    def __init__(self, config: Any = ...) -> None: ...
    def get_pserver_program(self, endpoint: str) -> Program: ...
    def get_pserver_programs(self, endpoint: str) -> Any: ...
    def get_startup_program(self, endpoint: str, pserver_program: Program | None = ..., startup_program: Program | None = ...) -> Program: ...
    def get_trainer_program(self, wait_port: bool = ...) -> Program: ...
    @property
    def has_distributed_lookup_table(self) -> Any: ...
    @property
    def plan(self) -> Any: ...
    @property
    def table_name(self) -> Any: ...
    def transpile(self, trainer_id: int, program: Program | None = ..., pservers: str | list[str] = ..., trainers: int | str | list[str] = ..., sync_mode: bool | None = ..., startup_program: Program | None = ..., current_endpoint: str = ..., slice_var_up: bool | None = ..., split_method: type[Any] | None = ..., beside: Any = ...) -> Any: ...
class DistributeTranspilerConfig:
    backup_trainers: Any
    big_array_bound: Any
    bn_sync: Any
    chunk_bytes: Any
    clip: Any
    collective_mode: Any
    completely_not_async: Any
    compression: Any
    dc_asgd_lambda: Any
    enable_dc_asgd: Any
    exchange: Any
    exchange_gbit: Any
    exchange_message_us: Any
    geo_sgd_mode: Any
    geo_sgd_need_push_nums: Any
    half_async: Any
    hierarchical_allreduce_inter_nranks: Any
    def is_set(self, field: str) -> bool: ...
    local_sgd_adaptive: Any
    local_sgd_k_steps: Any
    min_block_size: Any
    mode: Any
    nccl_comm_num: Any
    on_uneven: Any
    print_log: Any
    @property
    def runtime_split_send_recv(self) -> Any: ...
    @runtime_split_send_recv.setter
    def runtime_split_send_recv(self, value: Any) -> None: ...
    slice_var_up: Any
    slicing: Any
    split_method: Any
    staleness: Any
    @property
    def sync_mode(self) -> Any: ...
    @sync_mode.setter
    def sync_mode(self, value: Any) -> None: ...
    use_hierarchical_allreduce: Any
    def validate(self) -> Any: ...
    wait_port: Any
class DistributedMode:
    ASYNC: Any
    GEO: Any
    HALF_ASYNC: Any
    SYNC: Any
class ServerRuntimeConfig:
    def __init__(self) -> None: ...
class VarBlock:
    def __init__(self, varname: str, offset: int, size: int) -> None: ...
def addresses_of(given: Any, field: Any = ...) -> Any: ...
def same_or_split_var(p_name: str, var_name: str) -> bool: ...
def slice_variable(var_list: list[Variable], slice_count: int, min_block_size: int) -> list[str]: ...
__all__: list[str]
