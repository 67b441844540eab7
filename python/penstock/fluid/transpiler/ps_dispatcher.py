"""Assigns slices to pservers: classes for DistributeTranspilerConfig.split_method.

    class ByShape(PSDispatcher):                      # a rule of one's own
        def dispatch(self, varlist):
            return [self.eps[len(var.shape) % len(self.eps)] for var in varlist]

    config.split_method = ByShape

transpile() creates one object from the endpoints, calls dispatch with the slices of each gradient, then reset, and then
dispatch once with the slices of all parameters. The last results are the placement. For the classes in this module the
plan computes the placement itself; a direct call returns the same.
"""

# Written by tools/dev/gen_names.py.
from penstock._src.names import facade

if facade.TYPE_CHECKING:
    from penstock._src.transpile.ps_dispatcher import HashName, PSDispatcher, RoundRobin, SizeBalanced
    from penstock._src.transpile.ps_dispatcher import check as check, choose as choose

__all__ = ['HashName', 'PSDispatcher', 'RoundRobin', 'SizeBalanced']

facade.make(__name__)
