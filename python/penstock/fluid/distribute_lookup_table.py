"""Finds the table of a program that is_distributed=True of layers.embedding puts on the parameter servers."""

# Written by tools/dev/gen_names.py.
from penstock._src.names import facade

if facade.TYPE_CHECKING:
    from penstock._src.transpile.lookup_table import find_distributed_lookup_table
    from penstock._src.transpile.lookup_table import find_distributed_lookup_table_inputs
    from penstock._src.transpile.lookup_table import find_distributed_lookup_table_outputs

__all__ = [
    'find_distributed_lookup_table', 'find_distributed_lookup_table_inputs', 'find_distributed_lookup_table_outputs',
]

facade.make(__name__)
