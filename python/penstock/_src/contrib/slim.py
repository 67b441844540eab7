"""fluid.contrib.slim, which is not part of Penstock: it can be imported, but any use raises an error."""

from penstock._src.base.absent import absent

_WHY = (
    "compression (pruning, distillation, quantization, search) is not part of Penstock; it trains and distributes "
    "programs"
)
__path__, __getattr__ = absent("fluid.contrib.slim", _WHY)
