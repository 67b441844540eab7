"""Recurrent cells and decoders under their name in Fluid: fluid.layers.rnn.NAME is fluid.layers.NAME."""

from penstock.fluid._not_built import getattr_of

__getattr__ = getattr_of(__name__)
