"""Decoders whose step is described once, by a StateCell, for training and for beam search."""

# Written by tools/dev/gen_names.py.
from penstock._src.names import facade

if facade.TYPE_CHECKING:
    from penstock._src.contrib.beam_search_decoder import BeamSearchDecoder, TrainingDecoder
    from penstock._src.contrib.state_cell import InitState, StateCell
    from penstock.fluid.contrib.decoder import beam_search_decoder as beam_search_decoder

__all__ = ['BeamSearchDecoder', 'InitState', 'StateCell', 'TrainingDecoder']

facade.make(__name__)
