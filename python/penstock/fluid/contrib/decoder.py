"""fluid.contrib.decoder, which is not part of Penstock: it can be imported, but any use raises an error that names the
alternative."""

from penstock.fluid._absent import absent

__path__, __getattr__ = absent('fluid.contrib.decoder', 'StateCell and its decoders are not built; fluid.layers.rnn, '
                               'beam_search and beam_search_decode make such networks')
