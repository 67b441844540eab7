"""Layers of fluid.contrib: parts of matrices, text matching, trees of items, fused ops."""

# Written by tools/dev/gen_names.py.
from penstock._src.names import facade

if facade.TYPE_CHECKING:
    from penstock._src.contrib.convolutions import tree_conv, var_conv_2d
    from penstock._src.contrib.nn import fused_elemwise_activation, fused_embedding_seq_pool, match_matrix_tensor
    from penstock._src.contrib.nn import partial_concat, partial_sum, sequence_topk_avg_pooling, shuffle_batch
    from penstock._src.contrib.tree_index import tdm_child, tdm_sampler
    from penstock._src.ir.variable import Variable as Variable
    from penstock._src.layers.detection_nms import multiclass_nms2
    from penstock._src.layers.helper import LayerHelper as LayerHelper
    from penstock._src.layers.reshaping import reshape as reshape
    from penstock._src.layers.slicing import slice as slice_layer
    from penstock._src.parameters.initializer import Constant as Constant

__all__ = [
    'fused_elemwise_activation', 'fused_embedding_seq_pool', 'match_matrix_tensor', 'multiclass_nms2',
    'partial_concat', 'partial_sum', 'sequence_topk_avg_pooling', 'shuffle_batch', 'tdm_child', 'tdm_sampler',
    'tree_conv', 'var_conv_2d',
]

facade.make(__name__)
