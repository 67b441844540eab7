"""Functions for nested structures: lists, tuples and dicts of Variables, which cells and decoders take.

Entries of a dict are visited in the order of their keys.
"""

# Written by tools/dev/gen_names.py.
from penstock._src.names import facade

if facade.TYPE_CHECKING:
    from penstock._src.layers.nest import assert_same_structure as assert_same_structure
    from penstock._src.layers.nest import convert_to_list as convert_to_list, copy_mutable_vars as copy_mutable_vars
    from penstock._src.layers.nest import flatten as flatten, hold_mutable_vars as hold_mutable_vars
    from penstock._src.layers.nest import is_sequence as is_sequence, map_structure as map_structure
    from penstock._src.layers.nest import pack_sequence_as as pack_sequence_as

__all__ = [
    'assert_same_structure', 'convert_to_list', 'copy_mutable_vars', 'flatten', 'hold_mutable_vars', 'is_sequence',
    'map_structure', 'pack_sequence_as',
]

facade.make(__name__)
