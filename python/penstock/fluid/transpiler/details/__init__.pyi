# Written by tools/dev/gen_stubs.py.
# mypy: disable-error-code="override"
from typing import Any, Callable, Iterable, Iterator

from penstock.fluid.transpiler.details import checkport as checkport
from penstock.fluid.transpiler.details import program_utils as program_utils
from penstock.fluid.transpiler.details import ufind as ufind
from penstock.fluid.transpiler.details import vars_distributed as vars_distributed
from penstock.fluid.transpiler.details.checkport import wait_server_ready as wait_server_ready
from penstock.fluid.transpiler.details.program_utils import block_to_code as block_to_code
from penstock.fluid.transpiler.details.program_utils import delete_ops as delete_ops
from penstock.fluid.transpiler.details.program_utils import find_op_by_input_arg as find_op_by_input_arg
from penstock.fluid.transpiler.details.program_utils import find_op_by_output_arg as find_op_by_output_arg
from penstock.fluid.transpiler.details.program_utils import op_to_code as op_to_code
from penstock.fluid.transpiler.details.program_utils import program_to_code as program_to_code
from penstock.fluid.transpiler.details.program_utils import variable_to_code as variable_to_code
from penstock.fluid.transpiler.details.ufind import UnionFind as UnionFind
from penstock.fluid.transpiler.details.vars_distributed import VarDistributed as VarDistributed
from penstock.fluid.transpiler.details.vars_distributed import VarStruct as VarStruct
from penstock.fluid.transpiler.details.vars_distributed import VarsDistributed as VarsDistributed

__all__: list[str]
