# Written by tools/dev/gen_stubs.py.
# mypy: disable-error-code="override"
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any

from numpy import dtype
from numpy.typing import NDArray

from penstock.fluid.contrib.layers import metric_op as metric_op
from penstock.fluid.contrib.layers import nn as nn
from penstock.fluid.contrib.layers import rnn_impl as rnn_impl
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

__all__: list[str]
