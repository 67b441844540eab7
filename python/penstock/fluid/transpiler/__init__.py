"""DistributeTranspiler and its configuration, the transpilers of other modes, and rewrites that save memory."""

from penstock.fluid.transpiler import (collective, details, distribute_transpiler, geo_sgd_transpiler,
                                       memory_optimization_transpiler, ps_dispatcher)
from penstock.fluid.transpiler.distribute_transpiler import DistributeTranspiler, DistributeTranspilerConfig
from penstock.fluid.transpiler.geo_sgd_transpiler import GeoSgdTranspiler
from penstock.fluid.transpiler.memory_optimization_transpiler import memory_optimize, release_memory
from penstock.fluid.transpiler.ps_dispatcher import HashName, PSDispatcher, RoundRobin, SizeBalanced

__all__ = [
    'DistributeTranspiler', 'DistributeTranspilerConfig', 'GeoSgdTranspiler', 'HashName', 'PSDispatcher', 'RoundRobin',
    'SizeBalanced', 'collective', 'memory_optimize', 'release_memory',
]
