"""Functions for nested structures: lists, tuples and dicts of Variables, which cells and decoders take.

Entries of a dict are visited in the order of their keys.
"""

# Written by tools/dev/gen_names.py.
from penstock._src.names import facade

if facade.TYPE_CHECKING:
    from penstock._src.layers.nest import assert_same_structure, convert_to_list, copy_mutable_vars, flatten
    from penstock._src.layers.nest import hold_mutable_vars, is_sequence, map_structure, pack_sequence_as

__all__ = [
    'assert_same_structure', 'convert_to_list', 'copy_mutable_vars', 'flatten', 'hold_mutable_vars', 'is_sequence',
    'map_structure', 'pack_sequence_as',
]

facade.make(__name__)
