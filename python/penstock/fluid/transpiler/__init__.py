"""DistributeTranspiler and its configuration."""

from penstock.fluid.transpiler import details, distribute_transpiler, ps_dispatcher
from penstock.fluid.transpiler.distribute_transpiler import DistributeTranspiler, DistributeTranspilerConfig
from penstock.fluid.transpiler.ps_dispatcher import HashName, PSDispatcher, RoundRobin, SizeBalanced

__all__ = [
    'DistributeTranspiler', 'DistributeTranspilerConfig', 'HashName', 'PSDispatcher', 'RoundRobin', 'SizeBalanced',
]
