"""Which implementation of Fleet with pservers this is: DistributeTranspiler's."""

from __future__ import annotations

from penstock._src.fleet.mode import Mode

BUILD_MODE = Mode.TRANSPILER


def is_transpiler() -> bool:
    """Tells whether Fleet with pservers uses DistributeTranspiler; Fluid's other one, pslib, is not public.

    Returns:
        bool: True.

    Example:
        from penstock.fluid.incubate.fleet.parameter_server import version
        assert version.is_transpiler()
    """
    return BUILD_MODE == Mode.TRANSPILER
