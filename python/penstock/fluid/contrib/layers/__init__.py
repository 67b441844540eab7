"""Layers that Fluid defines outside `fluid.layers`. Layers that Penstock defines in `fluid.layers` are available here
too."""

# Written by tools/dev/gen_names.py.
from penstock._src.contrib.convolutions import tree_conv as tree_conv, var_conv_2d as var_conv_2d
from penstock._src.contrib.metric import ctr_metric_bundle as ctr_metric_bundle
from penstock._src.contrib.nn import (
    fused_elemwise_activation as fused_elemwise_activation, fused_embedding_seq_pool as fused_embedding_seq_pool,
    match_matrix_tensor as match_matrix_tensor, partial_concat as partial_concat, partial_sum as partial_sum,
    sequence_topk_avg_pooling as sequence_topk_avg_pooling, shuffle_batch as shuffle_batch,
)
from penstock._src.contrib.rnn import basic_gru as basic_gru, basic_lstm as basic_lstm
from penstock._src.contrib.tree_index import tdm_child as tdm_child, tdm_sampler as tdm_sampler
from penstock._src.layers.detection_nms import multiclass_nms2 as multiclass_nms2
from penstock._src.layers.rnn_units import BasicGRUUnit as BasicGRUUnit, BasicLSTMUnit as BasicLSTMUnit
from penstock._src.names import facade
from penstock.fluid.contrib.layers import metric_op as metric_op, nn as nn, rnn_impl as rnn_impl

__all__ = [
    'BasicGRUUnit', 'BasicLSTMUnit', 'basic_gru', 'basic_lstm', 'ctr_metric_bundle', 'fused_elemwise_activation',
    'fused_embedding_seq_pool', 'match_matrix_tensor', 'multiclass_nms2', 'partial_concat', 'partial_sum',
    'sequence_topk_avg_pooling', 'shuffle_batch', 'tdm_child', 'tdm_sampler', 'tree_conv', 'var_conv_2d',
]

facade.make(__name__, elsewhere=__all__)
