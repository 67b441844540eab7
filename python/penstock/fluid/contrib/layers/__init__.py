"""Layers that Fluid defines outside `fluid.layers`. Layers that Penstock defines in `fluid.layers` are available here
too."""

from penstock.fluid import layers
from penstock.fluid.contrib.layers import metric_op, nn, rnn_impl
from penstock.fluid.contrib.layers.metric_op import *
from penstock.fluid.contrib.layers.nn import *
from penstock.fluid.contrib.layers.rnn_impl import *

__all__ = metric_op.__all__ + nn.__all__ + rnn_impl.__all__


def __getattr__(name):
    if name.startswith('__'):
        raise AttributeError('module %s has no attribute %s' % (__name__, name))
    return getattr(layers, name)
