"""The parts of Fluid's fluid.contrib that Penstock provides."""

# Written by tools/dev/gen_names.py.
from penstock._src.contrib.convolutions import tree_conv as tree_conv, var_conv_2d as var_conv_2d
from penstock._src.contrib.memory_usage import memory_usage as memory_usage
from penstock._src.contrib.metric import ctr_metric_bundle as ctr_metric_bundle
from penstock._src.contrib.model_stat import summary as summary
from penstock._src.contrib.nn import (
    fused_elemwise_activation as fused_elemwise_activation, fused_embedding_seq_pool as fused_embedding_seq_pool,
    match_matrix_tensor as match_matrix_tensor, partial_concat as partial_concat, partial_sum as partial_sum,
    sequence_topk_avg_pooling as sequence_topk_avg_pooling, shuffle_batch as shuffle_batch,
)
from penstock._src.contrib.op_frequency import op_freq_statistic as op_freq_statistic
from penstock._src.contrib.quantize import QuantizeTranspiler as QuantizeTranspiler
from penstock._src.contrib.rnn import basic_gru as basic_gru, basic_lstm as basic_lstm
from penstock._src.contrib.tree_index import tdm_child as tdm_child, tdm_sampler as tdm_sampler
from penstock._src.data.distributed_reader import distributed_batch_reader as distributed_batch_reader
from penstock._src.layers.detection_nms import multiclass_nms2 as multiclass_nms2
from penstock._src.layers.rnn_units import BasicGRUUnit as BasicGRUUnit, BasicLSTMUnit as BasicLSTMUnit
from penstock._src.names import facade
from penstock._src.optimizer.decoupled_weight_decay import (
    extend_with_decoupled_weight_decay as extend_with_decoupled_weight_decay,
)
from penstock.fluid.contrib import (
    decoder as decoder, extend_optimizer as extend_optimizer, layers as layers,
    memory_usage_calc as memory_usage_calc, mixed_precision as mixed_precision, model_stat as model_stat,
    op_frequence as op_frequence, quantize as quantize, reader as reader, slim as slim, utils as utils,
)

__all__ = [
    'BasicGRUUnit', 'BasicLSTMUnit', 'QuantizeTranspiler', 'basic_gru', 'basic_lstm', 'ctr_metric_bundle',
    'distributed_batch_reader', 'extend_with_decoupled_weight_decay', 'fused_elemwise_activation',
    'fused_embedding_seq_pool', 'layers', 'match_matrix_tensor', 'memory_usage', 'mixed_precision', 'multiclass_nms2',
    'op_freq_statistic', 'partial_concat', 'partial_sum', 'sequence_topk_avg_pooling', 'shuffle_batch', 'summary',
    'tdm_child', 'tdm_sampler', 'tree_conv', 'var_conv_2d',
]

facade.make(__name__, elsewhere=(
    'BasicGRUUnit', 'BasicLSTMUnit', 'QuantizeTranspiler', 'basic_gru', 'basic_lstm', 'ctr_metric_bundle',
    'distributed_batch_reader', 'extend_with_decoupled_weight_decay', 'fused_elemwise_activation',
    'fused_embedding_seq_pool', 'match_matrix_tensor', 'memory_usage', 'multiclass_nms2', 'op_freq_statistic',
    'partial_concat', 'partial_sum', 'sequence_topk_avg_pooling', 'shuffle_batch', 'summary', 'tdm_child',
    'tdm_sampler', 'tree_conv', 'var_conv_2d',
))
