# Written by tools/dev/gen_stubs.py.
# mypy: disable-error-code="override"
from typing import Any, Callable, Iterable, Iterator

from penstock.fluid.contrib.layers import metric_op as metric_op
from penstock.fluid.contrib.layers import rnn_impl as rnn_impl
from penstock.fluid.contrib.layers.metric_op import ctr_metric_bundle as ctr_metric_bundle
from penstock.fluid.contrib.layers.rnn_impl import basic_gru as basic_gru
from penstock.fluid.contrib.layers.rnn_impl import basic_lstm as basic_lstm
from penstock.fluid.layers.rnn_units import BasicGRUUnit as BasicGRUUnit
from penstock.fluid.layers.rnn_units import BasicLSTMUnit as BasicLSTMUnit

__all__: list[str]
