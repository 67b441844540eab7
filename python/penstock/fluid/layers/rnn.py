"""Recurrent cells and decoders under their name in Fluid: fluid.layers.rnn.NAME is fluid.layers.NAME."""

# Written by tools/dev/gen_names.py.
from penstock._src.names import facade

if facade.TYPE_CHECKING:
    from penstock._src.layers.beam_search_decoder import BeamSearchDecoder as BeamSearchDecoder
    from penstock._src.layers.beam_search_ops import beam_search as beam_search
    from penstock._src.layers.beam_search_ops import beam_search_decode as beam_search_decode
    from penstock._src.layers.decode_helpers import DecodeHelper as DecodeHelper
    from penstock._src.layers.decode_helpers import GreedyEmbeddingHelper as GreedyEmbeddingHelper
    from penstock._src.layers.decode_helpers import SampleEmbeddingHelper as SampleEmbeddingHelper
    from penstock._src.layers.decode_helpers import TrainingHelper as TrainingHelper
    from penstock._src.layers.decoders import BasicDecoder as BasicDecoder, Decoder as Decoder
    from penstock._src.layers.decoders import dynamic_decode as dynamic_decode
    from penstock._src.layers.recurrent import dynamic_gru as dynamic_gru, dynamic_lstm as dynamic_lstm
    from penstock._src.layers.recurrent import dynamic_lstmp as dynamic_lstmp, lstm as lstm
    from penstock._src.layers.recurrent_steps import gru_unit as gru_unit, lstm_unit as lstm_unit
    from penstock._src.layers.rnn import rnn as rnn
    from penstock._src.layers.rnn_cells import GRUCell as GRUCell, LSTMCell as LSTMCell, RNNCell as RNNCell

__all__ = [
    'BasicDecoder', 'BeamSearchDecoder', 'DecodeHelper', 'Decoder', 'GRUCell', 'GreedyEmbeddingHelper', 'LSTMCell',
    'RNNCell', 'SampleEmbeddingHelper', 'TrainingHelper', 'beam_search', 'beam_search_decode', 'dynamic_decode',
    'dynamic_gru', 'dynamic_lstm', 'dynamic_lstmp', 'gru_unit', 'lstm', 'lstm_unit', 'rnn',
]

facade.make(__name__)
