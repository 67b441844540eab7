"""Names of the placements, for DistributeTranspilerConfig.split_method. The placement itself is C++, in the plan."""

__all__ = ['HashName', 'PSDispatcher', 'RoundRobin']


class PSDispatcher:
    """`placement` is the plan's name of it."""
    placement = None


class RoundRobin(PSDispatcher):
    """Slices go to the pservers in turn."""
    placement = 'RoundRobin'


class HashName(PSDispatcher):
    """Each slice goes where the hash of its name points."""
    placement = 'HashName'
