"""GRUs and LSTMs with several layers over padded sequences, built from ordinary layers."""

# Written by tools/dev/gen_names.py.
from penstock._src.names import facade

if facade.TYPE_CHECKING:
    from penstock._src.contrib.rnn import basic_gru, basic_lstm
    from penstock._src.layers.arithmetic import elementwise_mul as elementwise_mul
    from penstock._src.layers.rnn_units import BasicGRUUnit, BasicLSTMUnit
    from penstock._src.layers.static_rnn import StaticRNN as StaticRNN
    from penstock._src.layers.tensor import concat as concat

__all__ = ['BasicGRUUnit', 'BasicLSTMUnit', 'basic_gru', 'basic_lstm']

facade.make(__name__)
