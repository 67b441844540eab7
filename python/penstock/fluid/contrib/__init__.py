"""The parts of Fluid's fluid.contrib that Penstock provides."""

# Written by tools/dev/gen_names.py.
from penstock._src.names import facade

if facade.TYPE_CHECKING:
    from penstock._src.contrib.memory_usage import memory_usage
    from penstock._src.contrib.model_stat import summary
    from penstock._src.contrib.op_frequency import op_freq_statistic
    from penstock._src.contrib.quantize import QuantizeTranspiler
    from penstock._src.data.distributed_reader import distributed_batch_reader
    from penstock._src.optimizer.decoupled_weight_decay import extend_with_decoupled_weight_decay
    from penstock.fluid.contrib import decoder as decoder, extend_optimizer as extend_optimizer, layers
    from penstock.fluid.contrib import memory_usage_calc as memory_usage_calc, mixed_precision
    from penstock.fluid.contrib import model_stat as model_stat, op_frequence as op_frequence, quantize as quantize
    from penstock.fluid.contrib import reader as reader, slim as slim, utils as utils
    from penstock.fluid.contrib.layers import *

__all__ = [
    'BasicGRUUnit', 'BasicLSTMUnit', 'QuantizeTranspiler', 'basic_gru', 'basic_lstm', 'ctr_metric_bundle',
    'distributed_batch_reader', 'extend_with_decoupled_weight_decay', 'fused_elemwise_activation',
    'fused_embedding_seq_pool', 'layers', 'match_matrix_tensor', 'memory_usage', 'mixed_precision', 'multiclass_nms2',
    'op_freq_statistic', 'partial_concat', 'partial_sum', 'sequence_topk_avg_pooling', 'shuffle_batch', 'summary',
    'tdm_child', 'tdm_sampler', 'tree_conv', 'var_conv_2d',
]

facade.make(__name__)
