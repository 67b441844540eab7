"""DistributeTranspiler and its configuration, the transpilers of other modes, and rewrites that save memory."""

# Written by tools/dev/gen_names.py.
from penstock._src.names import facade

if facade.TYPE_CHECKING:
    from penstock._src.transpile.config import DistributeTranspilerConfig
    from penstock._src.transpile.distribute_transpiler import DistributeTranspiler
    from penstock._src.transpile.geo_sgd_transpiler import GeoSgdTranspiler
    from penstock._src.transpile.memory_optimization import memory_optimize, release_memory
    from penstock._src.transpile.ps_dispatcher import HashName, PSDispatcher, RoundRobin, SizeBalanced
    from penstock.fluid.transpiler import collective, details as details
    from penstock.fluid.transpiler import distribute_transpiler as distribute_transpiler
    from penstock.fluid.transpiler import geo_sgd_transpiler as geo_sgd_transpiler
    from penstock.fluid.transpiler import memory_optimization_transpiler as memory_optimization_transpiler
    from penstock.fluid.transpiler import ps_dispatcher as ps_dispatcher

__all__ = [
    'DistributeTranspiler', 'DistributeTranspilerConfig', 'GeoSgdTranspiler', 'HashName', 'PSDispatcher',
    'RoundRobin', 'SizeBalanced', 'collective', 'memory_optimize', 'release_memory',
]

facade.make(__name__)
