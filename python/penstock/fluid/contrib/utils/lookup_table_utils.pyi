# Written by tools/dev/gen_stubs.py.
# mypy: disable-error-code="override"
from typing import Any, Callable, Iterable, Iterator

from enum import IntEnum as IntEnum
from penstock.fluid.executor import Executor as Executor
from penstock.fluid.executor import global_scope as global_scope
from penstock.fluid.framework import Program as Program
from penstock.fluid.variable import Variable as Variable

MODEL_KINDS: Any
TABLES_FOLDER: str
class VarType(IntEnum):
    BOOL = 0
    FEED_MINIBATCH = 9
    FETCH_LIST = 10
    FP16 = 4
    FP32 = 5
    FP64 = 6
    INT16 = 1
    INT32 = 2
    INT64 = 3
    INT8 = 21
    LOD_RANK_TABLE = 12
    LOD_TENSOR = 7
    LOD_TENSOR_ARRAY = 13
    PLACE_LIST = 14
    RAW = 17
    READER = 15
    SELECTED_ROWS = 8
    SIZE_T = 19
    STEP_SCOPES = 11
    TUPLE = 18
    UINT8 = 20
def append_fetch_ops(inference_program: Program, fetch_target_names: list[str], fetch_holder_name: str = ...) -> Any: ...
def convert_dist_to_sparse_program(program: Program) -> Program: ...
def get_inference_model(main_program: Program, feeded_var_names: list[str], target_vars: list[Variable]) -> Program: ...
def load_folder(program: Program, dirname: str, kinds: tuple[Any, ...] = ..., strictly: bool = ...) -> Any: ...
def load_persistables_for_increment(dirname: str, executor: Executor, program: Program, lookup_table_var: str, lookup_table_var_path: str) -> Any: ...
def load_persistables_for_inference(dirname: str, executor: Executor, program: Program | None, lookup_table_var_name: str) -> Program: ...
def load_shard(program: Any, table: Any, path: Any, kinds: Any) -> Any: ...
def look_up_at_hand(program: Any, by_id: Any = ...) -> Any: ...
def prepend_feed_ops(inference_program: Program, feed_target_names: list[str], feed_holder_name: str = ...) -> Any: ...
def read_rows(path: Any) -> Any: ...
def stack_level() -> Any: ...
__all__: list[str]
