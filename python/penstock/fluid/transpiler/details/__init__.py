"""The variables that a transpile distributed, and programs as text."""

from penstock.fluid.transpiler.details.program_utils import (block_to_code, delete_ops, find_op_by_input_arg,
                                                             find_op_by_output_arg, op_to_code, program_to_code,
                                                             variable_to_code)
from penstock.fluid.transpiler.details.vars_distributed import VarDistributed, VarsDistributed, VarStruct

__all__ = [
    'VarDistributed', 'VarStruct', 'VarsDistributed', 'block_to_code', 'delete_ops', 'find_op_by_input_arg',
    'find_op_by_output_arg', 'op_to_code', 'program_to_code', 'variable_to_code'
]
