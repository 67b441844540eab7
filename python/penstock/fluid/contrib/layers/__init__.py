"""Layers that Fluid keeps apart from `fluid.layers`."""

from penstock.fluid._not_built import getattr_of
from penstock.fluid.contrib.layers import rnn_impl
from penstock.fluid.contrib.layers.rnn_impl import *

__all__ = rnn_impl.__all__

__getattr__ = getattr_of(__name__)
