"""Decoders whose step is described once, by a StateCell, for training and for beam search."""

from penstock.fluid.contrib.decoder import beam_search_decoder
from penstock.fluid.contrib.decoder.beam_search_decoder import *

__all__ = beam_search_decoder.__all__
