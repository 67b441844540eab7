"""fluid.contrib.quantize, which is not part of Penstock: it can be imported, but any use raises an error."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock._src.base.absent import absent
from penstock._src.base.errors import not_built

if TYPE_CHECKING:
    from typing import Any


_WHY = "quantization is not part of Penstock; it trains and distributes programs"
__path__, __getattr__ = absent("fluid.contrib.quantize", _WHY)


class QuantizeTranspiler:
    """Raises NotImplementedError: Penstock does not quantize programs.

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

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        raise not_built("fluid.contrib.QuantizeTranspiler: " + _WHY)
