"""Which implementation a Fleet is."""

__all__ = ['Mode']


class Mode:
    """The numbers of Fluid's implementations of Fleet.

    Example:
        from penstock.fluid.incubate.fleet.base.mode import Mode
        assert Mode.COLLECTIVE == 3
    """
    TRANSPILER = 1    # DistributeTranspiler: pservers and trainers
    PSLIB = 2         # a library that is not public; not here
    COLLECTIVE = 3    # equal ranks
