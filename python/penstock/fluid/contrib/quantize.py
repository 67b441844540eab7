"""fluid.contrib.quantize, which is not part of Penstock: importing works, using says so."""

from penstock.fluid._absent import absent

_WHY = 'quantization is not part of Penstock; it trains and distributes programs'
__path__, __getattr__ = absent('fluid.contrib.quantize', _WHY)


class QuantizeTranspiler:
    """Raises NotImplementedError when it is made: programs are not quantized here."""

    def __init__(self, *args, **kwargs):
        raise NotImplementedError('fluid.contrib.QuantizeTranspiler: ' + _WHY)
