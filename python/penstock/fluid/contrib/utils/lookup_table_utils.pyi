# Written by tools/dev/gen_stubs.py.
# mypy: disable-error-code="override"
from typing import Any, Callable, Iterable, Iterator

from penstock.fluid.executor import Executor as Executor
from penstock.fluid.executor import global_scope as global_scope
from penstock.fluid.framework import Program as Program
from penstock.fluid.framework import Variable as Variable
from penstock.fluid.io import append_fetch_ops as append_fetch_ops
from penstock.fluid.io import prepend_feed_ops as prepend_feed_ops

def convert_dist_to_sparse_program(program: Program) -> Program: ...
def get_inference_model(main_program: Program, feeded_var_names: list[str], target_vars: list[Variable]) -> Program: ...
def load_persistables_for_increment(dirname: str, executor: Executor, program: Program, lookup_table_var: str, lookup_table_var_path: str) -> Any: ...
def load_persistables_for_inference(dirname: str, executor: Executor, program: Program | None, lookup_table_var_name: str) -> Program: ...
__all__: list[str]
