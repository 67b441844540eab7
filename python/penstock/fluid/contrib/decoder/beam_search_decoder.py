"""The decoders of a StateCell: over given sentences, for training, and by beam search."""

# Written by tools/dev/gen_names.py.
from penstock._src.names import facade

if facade.TYPE_CHECKING:
    from penstock._src.contrib.beam_search_decoder import BeamSearchDecoder, TrainingDecoder
    from penstock._src.contrib.state_cell import InitState, StateCell
    from penstock._src.ir.framework import default_main_program as default_main_program
    from penstock._src.ir.types import VarDesc as VarDesc
    from penstock._src.ir.variable import Variable as Variable

__all__ = ['BeamSearchDecoder', 'InitState', 'StateCell', 'TrainingDecoder']

facade.make(__name__)
