"""Prints programs as text, and draws them as graphs for Graphviz."""

# Written by tools/dev/gen_names.py.
from penstock._src.names import facade

if facade.TYPE_CHECKING:
    from penstock._src.debug.debugger import draw_block_graphviz, pprint_block_codes, pprint_program_codes
    from penstock._src.ir.program_text import op_to_code as op_to_code, variable_to_code as variable_to_code

__all__ = ['draw_block_graphviz', 'pprint_block_codes', 'pprint_program_codes']

facade.make(__name__)
