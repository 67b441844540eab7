"""Recurrent cells and decoders under their name in Fluid: fluid.layers.rnn.NAME is fluid.layers.NAME."""

# Written by tools/dev/gen_names.py.
from penstock._src.names import facade

if facade.TYPE_CHECKING:
    from penstock._src.layers.beam_search_decoder import BeamSearchDecoder
    from penstock._src.layers.beam_search_ops import beam_search, beam_search_decode
    from penstock._src.layers.decode_helpers import DecodeHelper, GreedyEmbeddingHelper, SampleEmbeddingHelper
    from penstock._src.layers.decode_helpers import TrainingHelper
    from penstock._src.layers.decoders import BasicDecoder, Decoder, dynamic_decode
    from penstock._src.layers.recurrent import dynamic_gru, dynamic_lstm, dynamic_lstmp, lstm
    from penstock._src.layers.recurrent_steps import gru_unit, lstm_unit
    from penstock._src.layers.rnn import rnn
    from penstock._src.layers.rnn_cells import GRUCell, LSTMCell, RNNCell

__all__ = [
    'BasicDecoder', 'BeamSearchDecoder', 'DecodeHelper', 'Decoder', 'GRUCell', 'GreedyEmbeddingHelper', 'LSTMCell',
    'RNNCell', 'SampleEmbeddingHelper', 'TrainingHelper', 'beam_search', 'beam_search_decode', 'dynamic_decode',
    'dynamic_gru', 'dynamic_lstm', 'dynamic_lstmp', 'gru_unit', 'lstm', 'lstm_unit', 'rnn',
]

facade.make(__name__)
