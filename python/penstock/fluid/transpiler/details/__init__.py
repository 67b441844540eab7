"""The variables that a transpile distributed, programs as text, and small tools."""

# Written by tools/dev/gen_names.py.
from penstock._src.names import facade

if facade.TYPE_CHECKING:
    from penstock._src.ir.program_text import block_to_code, delete_ops, find_op_by_input_arg, find_op_by_output_arg
    from penstock._src.ir.program_text import op_to_code, program_to_code, variable_to_code
    from penstock._src.transpile.checkport import wait_server_ready
    from penstock._src.transpile.ufind import UnionFind
    from penstock._src.transpile.vars_distributed import VarDistributed, VarsDistributed, VarStruct
    from penstock.fluid.transpiler.details import checkport, program_utils as program_utils, ufind
    from penstock.fluid.transpiler.details import vars_distributed as vars_distributed

__all__ = [
    'UnionFind', 'VarDistributed', 'VarStruct', 'VarsDistributed', 'block_to_code', 'checkport', 'delete_ops',
    'find_op_by_input_arg', 'find_op_by_output_arg', 'op_to_code', 'program_to_code', 'ufind', 'variable_to_code',
    'wait_server_ready',
]

facade.make(__name__)
