# Written by tools/dev/gen_stubs.py.
# mypy: disable-error-code="override"
from typing import Any, Callable, Iterable, Iterator

BN_SYNCS: Any
CLIPS: Any
COLLECTIVE_MODES: Any
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
EXCHANGES: Any
MODES: Any
MOST_ELEMENTS: int
MOST_TRAINERS: int
ON_UNEVEN: Any
SLICINGS: Any
def check_choice(field: Any, value: Any, choices: Any, id: Any) -> Any: ...
def check_count(field: Any, value: Any, least: Any = ..., most: Any = ...) -> Any: ...
def check_flag(field: Any, value: Any) -> Any: ...
def check_number(field: Any, value: Any) -> Any: ...
def dense_exchange(exchange: Any) -> Any: ...
def ids_of_trainers(trainers: Any, ids: Any) -> Any: ...
def program_error(id: Any, message: Any, *details: Any) -> Any: ...
def set_policies(staleness: Any, backup_trainers: Any, compression: Any, config: Any) -> Any: ...
def suggestion(name: Any, known: Any, most: Any = ...) -> Any: ...
__all__: list[str]
