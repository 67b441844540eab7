"""fluid.contrib.quantize, which is not part of Penstock: importing works, using says so."""

from penstock.fluid._absent import absent

_WHY = 'quantization is not part of Penstock; it trains and distributes programs'
__path__, __getattr__ = absent('fluid.contrib.quantize', _WHY)


class QuantizeTranspiler:
    """Programs are not quantized here, so making one is an error.

    Args:
        *args (object): ignored; accepted for compatibility with Fluid.
        **kwargs (object): ignored; accepted for compatibility with Fluid.

    Raises:
        NotImplementedError: always.

    Example:
        try:
            fluid.contrib.QuantizeTranspiler()
        except NotImplementedError as error:
            assert 'quantization is not part of Penstock' in str(error)
    """

    def __init__(self, *args, **kwargs):
        raise NotImplementedError('fluid.contrib.QuantizeTranspiler: ' + _WHY)
