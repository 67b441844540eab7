"""Programs as text, and searches for ops of a block, as Fluid's scripts use them."""

# Written by tools/dev/gen_names.py.
from penstock._src.names import facade

if facade.TYPE_CHECKING:
    from penstock._src.ir.program_text import block_to_code, delete_ops, find_op_by_input_arg, find_op_by_output_arg
    from penstock._src.ir.program_text import op_to_code, program_to_code, variable_to_code

__all__ = [
    'block_to_code', 'delete_ops', 'find_op_by_input_arg', 'find_op_by_output_arg', 'op_to_code', 'program_to_code',
    'variable_to_code',
]

facade.make(__name__)
