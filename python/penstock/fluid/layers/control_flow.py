"""Comparisons, counters, and layers whose ops run in their own blocks."""

# Written by tools/dev/gen_names.py.
from penstock._src.names import facade

if facade.TYPE_CHECKING:
    from penstock._src.ir.variable import Variable as Variable
    from penstock._src.layers.comparison import equal, greater_equal, greater_than, increment, is_empty, less_equal
    from penstock._src.layers.comparison import less_than, not_equal
    from penstock._src.layers.control_flow import Print, Switch, case, cond, select_input as select_input
    from penstock._src.layers.control_flow import select_output as select_output, switch_case
    from penstock._src.layers.control_flow_blocks import BlockGuard as BlockGuard
    from penstock._src.layers.control_flow_blocks import ConditionalBlock as ConditionalBlock
    from penstock._src.layers.control_flow_blocks import ConditionalBlockGuard as ConditionalBlockGuard
    from penstock._src.layers.dynamic_rnn import DynamicRNN
    from penstock._src.layers.helper import LayerHelper as LayerHelper
    from penstock._src.layers.if_else import IfElse
    from penstock._src.layers.loops import While, WhileGuard as WhileGuard, while_loop
    from penstock._src.layers.static_rnn import StaticRNN, StaticRNNMemoryLink as StaticRNNMemoryLink
    from penstock._src.layers.tensor_array import array_length, array_read
    from penstock._src.layers.tensor_array import array_to_lod_tensor as array_to_lod_tensor, array_write
    from penstock._src.layers.tensor_array import create_array, lod_rank_table as lod_rank_table
    from penstock._src.layers.tensor_array import lod_tensor_to_array as lod_tensor_to_array
    from penstock._src.layers.tensor_array import max_sequence_len as max_sequence_len
    from penstock._src.layers.tensor_array import merge_lod_tensor as merge_lod_tensor, reorder_lod_tensor_by_rank
    from penstock._src.layers.tensor_array import shrink_memory as shrink_memory
    from penstock._src.layers.tensor_array import split_lod_tensor as split_lod_tensor, tensor_array_to_tensor

__all__ = [
    'DynamicRNN', 'IfElse', 'Print', 'StaticRNN', 'Switch', 'While', 'array_length', 'array_read', 'array_write',
    'case', 'cond', 'create_array', 'equal', 'greater_equal', 'greater_than', 'increment', 'is_empty', 'less_equal',
    'less_than', 'not_equal', 'reorder_lod_tensor_by_rank', 'switch_case', 'tensor_array_to_tensor', 'while_loop',
]

facade.make(__name__)
