"""DistributeTranspiler and its configuration, the transpilers of other modes, and rewrites that save memory."""

# Written by tools/dev/gen_names.py.
from penstock._src.names import facade
from penstock._src.transpile.config import DistributeTranspilerConfig as DistributeTranspilerConfig
from penstock._src.transpile.distribute_transpiler import DistributeTranspiler as DistributeTranspiler
from penstock._src.transpile.geo_sgd_transpiler import GeoSgdTranspiler as GeoSgdTranspiler
from penstock._src.transpile.memory_optimization import (
    memory_optimize as memory_optimize, release_memory as release_memory,
)
from penstock._src.transpile.ps_dispatcher import (
    HashName as HashName, PSDispatcher as PSDispatcher, RoundRobin as RoundRobin, SizeBalanced as SizeBalanced,
)
from penstock.fluid.transpiler import (
    collective as collective, details as details, distribute_transpiler as distribute_transpiler,
    geo_sgd_transpiler as geo_sgd_transpiler, memory_optimization_transpiler as memory_optimization_transpiler,
    ps_dispatcher as ps_dispatcher,
)

__all__ = [
    'DistributeTranspiler', 'DistributeTranspilerConfig', 'GeoSgdTranspiler', 'HashName', 'PSDispatcher',
    'RoundRobin', 'SizeBalanced', 'collective', 'memory_optimize', 'release_memory',
]

facade.make(__name__, elsewhere=(
    'DistributeTranspiler', 'DistributeTranspilerConfig', 'GeoSgdTranspiler', 'HashName', 'PSDispatcher',
    'RoundRobin', 'SizeBalanced', 'memory_optimize', 'release_memory',
))
