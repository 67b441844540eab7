# Written by tools/dev/gen_stubs.py.
# mypy: disable-error-code="override"
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any

from numpy import dtype
from numpy.typing import NDArray

from penstock.fluid.contrib import decoder as decoder
from penstock.fluid.contrib import extend_optimizer as extend_optimizer
from penstock.fluid.contrib import layers as layers
from penstock.fluid.contrib import memory_usage_calc as memory_usage_calc
from penstock.fluid.contrib import mixed_precision as mixed_precision
from penstock.fluid.contrib import model_stat as model_stat
from penstock.fluid.contrib import op_frequence as op_frequence
from penstock.fluid.contrib import quantize as quantize
from penstock.fluid.contrib import reader as reader
from penstock.fluid.contrib import slim as slim
from penstock.fluid.contrib import utils as utils
from penstock.fluid.contrib.extend_optimizer.extend_optimizer_with_weight_decay import extend_with_decoupled_weight_decay as extend_with_decoupled_weight_decay
from penstock.fluid.contrib.layers.metric_op import ctr_metric_bundle as ctr_metric_bundle
from penstock.fluid.contrib.layers.nn import fused_elemwise_activation as fused_elemwise_activation
from penstock.fluid.contrib.layers.nn import fused_embedding_seq_pool as fused_embedding_seq_pool
from penstock.fluid.contrib.layers.nn import match_matrix_tensor as match_matrix_tensor
from penstock.fluid.contrib.layers.nn import multiclass_nms2 as multiclass_nms2
from penstock.fluid.contrib.layers.nn import partial_concat as partial_concat
from penstock.fluid.contrib.layers.nn import partial_sum as partial_sum
from penstock.fluid.contrib.layers.nn import sequence_topk_avg_pooling as sequence_topk_avg_pooling
from penstock.fluid.contrib.layers.nn import shuffle_batch as shuffle_batch
from penstock.fluid.contrib.layers.nn import tdm_child as tdm_child
from penstock.fluid.contrib.layers.nn import tdm_sampler as tdm_sampler
from penstock.fluid.contrib.layers.nn import tree_conv as tree_conv
from penstock.fluid.contrib.layers.nn import var_conv_2d as var_conv_2d
from penstock.fluid.contrib.layers.rnn_impl import BasicGRUUnit as BasicGRUUnit
from penstock.fluid.contrib.layers.rnn_impl import BasicLSTMUnit as BasicLSTMUnit
from penstock.fluid.contrib.layers.rnn_impl import basic_gru as basic_gru
from penstock.fluid.contrib.layers.rnn_impl import basic_lstm as basic_lstm
from penstock.fluid.contrib.memory_usage_calc import memory_usage as memory_usage
from penstock.fluid.contrib.model_stat import summary as summary
from penstock.fluid.contrib.op_frequence import op_freq_statistic as op_freq_statistic
from penstock.fluid.contrib.quantize import QuantizeTranspiler as QuantizeTranspiler
from penstock.fluid.contrib.reader.distributed_reader import distributed_batch_reader as distributed_batch_reader

__all__: list[str]
