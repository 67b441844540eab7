"""The implementations of Fleet."""


class Mode:
    """The numbers of Fluid's implementations of Fleet.

    Example:
        from penstock.fluid.incubate.fleet.base.mode import Mode
        assert Mode.COLLECTIVE == 3
    """

    TRANSPILER = 1  # DistributeTranspiler: pservers and trainers
    PSLIB = 2  # a library that is not public; not supported
    COLLECTIVE = 3  # equal ranks
