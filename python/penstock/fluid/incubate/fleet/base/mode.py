"""Which implementation a Fleet is."""

__all__ = ['Mode']


class Mode:
    """The numbers of Fluid's implementations of Fleet."""
    TRANSPILER = 1    # DistributeTranspiler: pservers and trainers
    PSLIB = 2         # a library that is not public; not here
    COLLECTIVE = 3    # equal ranks
