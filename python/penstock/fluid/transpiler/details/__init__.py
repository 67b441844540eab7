"""The variables that a transpile distributed, programs as text, and small tools."""

from penstock.fluid.transpiler.details import checkport, ufind
from penstock.fluid.transpiler.details.checkport import wait_server_ready
from penstock.fluid.transpiler.details.program_utils import (block_to_code, delete_ops, find_op_by_input_arg,
                                                             find_op_by_output_arg, op_to_code, program_to_code,
                                                             variable_to_code)
from penstock.fluid.transpiler.details.ufind import UnionFind
from penstock.fluid.transpiler.details.vars_distributed import VarDistributed, VarsDistributed, VarStruct

__all__ = [
    'UnionFind', 'VarDistributed', 'VarStruct', 'VarsDistributed', 'block_to_code', 'checkport', 'delete_ops',
    'find_op_by_input_arg', 'find_op_by_output_arg', 'op_to_code', 'program_to_code', 'ufind', 'variable_to_code',
    'wait_server_ready'
]
