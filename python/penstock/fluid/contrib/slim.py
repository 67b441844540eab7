"""fluid.contrib.slim, which is not part of Penstock: importing works, using says so."""

from penstock.fluid._absent import absent

_WHY = ('compression (pruning, distillation, quantization, search) is not part of Penstock; it trains and distributes '
        'programs')
__path__, __getattr__ = absent('fluid.contrib.slim', _WHY)
