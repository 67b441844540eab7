"""Layers that Fluid defines outside `fluid.layers`. Layers that Penstock defines in `fluid.layers` are available here
too."""

# Written by tools/dev/gen_names.py.
from penstock._src.names import facade

if facade.TYPE_CHECKING:
    from penstock._src.contrib.metric import ctr_metric_bundle
    from penstock._src.contrib.rnn import basic_gru, basic_lstm
    from penstock._src.layers.rnn_units import BasicGRUUnit, BasicLSTMUnit
    from penstock.fluid.contrib.layers import metric_op as metric_op, nn as nn, rnn_impl as rnn_impl
    from penstock.fluid.contrib.layers.nn import *

__all__ = [
    'BasicGRUUnit', 'BasicLSTMUnit', 'basic_gru', 'basic_lstm', 'ctr_metric_bundle', 'fused_elemwise_activation',
    'fused_embedding_seq_pool', 'match_matrix_tensor', 'multiclass_nms2', 'partial_concat', 'partial_sum',
    'sequence_topk_avg_pooling', 'shuffle_batch', 'tdm_child', 'tdm_sampler', 'tree_conv', 'var_conv_2d',
]

facade.make(__name__)
