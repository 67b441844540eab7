# Written by tools/dev/gen_stubs.py.
from typing import TypedDict

from penstock._src.transpile.ps_dispatcher import PSDispatcher

class Fields:
    """The fields of DistributeTranspilerConfig."""

    slice_var_up: bool
    slicing: str
    min_block_size: int
    big_array_bound: int
    chunk_bytes: int
    split_method: type[PSDispatcher] | None
    half_async: bool
    completely_not_async: bool
    enable_dc_asgd: bool
    dc_asgd_lambda: float
    geo_sgd_need_push_nums: int
    staleness: int | None
    backup_trainers: int
    compression: str
    exchange: dict[str, str] | str | None
    exchange_gbit: float
    exchange_message_us: float
    on_uneven: str
    clip: str
    bn_sync: str
    nccl_comm_num: int
    use_hierarchical_allreduce: bool
    hierarchical_allreduce_inter_nranks: int
    collective_mode: str | None
    local_sgd_k_steps: int
    local_sgd_adaptive: bool

class Arguments(TypedDict, total=False):
    """The settings that penstock.transpile takes."""

    slice_params: bool
    slicing: str
    min_block_size: int
    big_array_bound: int
    chunk_bytes: int
    placement: str | type[PSDispatcher]
    sync: bool
    runtime_split_send_recv: bool
    half_async: bool
    completely_not_async: bool
    dc_asgd: bool
    dc_asgd_lambda: float
    staleness: int | None
    backup_trainers: int
    compression: str
    exchange: dict[str, str] | str | None
    exchange_gbit: float
    exchange_message_us: float
    on_uneven: str
    clip: str
    bn_sync: str
    rings: int

class RankArguments(TypedDict, total=False):
    """The settings that penstock.transpile_ranks takes."""

    on_uneven: str
    rings: int
    node_ranks: int
    k_steps: int
    adaptive: bool
