"""The variables that a transpile distributed, programs as text, and small tools."""

# Written by tools/dev/gen_names.py.
from penstock._src.names import facade

if facade.TYPE_CHECKING:
    from penstock._src.ir.program_text import block_to_code as block_to_code, delete_ops as delete_ops
    from penstock._src.ir.program_text import find_op_by_input_arg as find_op_by_input_arg
    from penstock._src.ir.program_text import find_op_by_output_arg as find_op_by_output_arg
    from penstock._src.ir.program_text import op_to_code as op_to_code, program_to_code as program_to_code
    from penstock._src.ir.program_text import variable_to_code as variable_to_code
    from penstock._src.transpile.checkport import wait_server_ready as wait_server_ready
    from penstock._src.transpile.ufind import UnionFind as UnionFind
    from penstock._src.transpile.vars_distributed import VarDistributed as VarDistributed
    from penstock._src.transpile.vars_distributed import VarsDistributed as VarsDistributed, VarStruct as VarStruct
    from penstock.fluid.transpiler.details import checkport as checkport, program_utils as program_utils
    from penstock.fluid.transpiler.details import ufind as ufind, vars_distributed as vars_distributed

__all__ = [
    'UnionFind', 'VarDistributed', 'VarStruct', 'VarsDistributed', 'block_to_code', 'checkport', 'delete_ops',
    'find_op_by_input_arg', 'find_op_by_output_arg', 'op_to_code', 'program_to_code', 'ufind', 'variable_to_code',
    'wait_server_ready',
]

facade.make(__name__)
