"""fluid.contrib.decoder, which is not part of Penstock: importing works, using says what to use instead."""

from penstock.fluid._absent import absent

__path__, __getattr__ = absent('fluid.contrib.decoder', 'StateCell and its decoders are not built; fluid.layers.rnn, '
                               'beam_search and beam_search_decode make such networks')
