# Written by tools/dev/gen_stubs.py.
# mypy: disable-error-code="override"
from typing import Any, Callable, Iterable, Iterator

from penstock.fluid.transpiler import collective as collective
from penstock.fluid.transpiler import details as details
from penstock.fluid.transpiler import distribute_transpiler as distribute_transpiler
from penstock.fluid.transpiler import geo_sgd_transpiler as geo_sgd_transpiler
from penstock.fluid.transpiler import memory_optimization_transpiler as memory_optimization_transpiler
from penstock.fluid.transpiler import ps_dispatcher as ps_dispatcher
from penstock.fluid.transpiler.distribute_transpiler import DistributeTranspiler as DistributeTranspiler
from penstock.fluid.transpiler.distribute_transpiler import DistributeTranspilerConfig as DistributeTranspilerConfig
from penstock.fluid.transpiler.geo_sgd_transpiler import GeoSgdTranspiler as GeoSgdTranspiler
from penstock.fluid.transpiler.memory_optimization_transpiler import memory_optimize as memory_optimize
from penstock.fluid.transpiler.memory_optimization_transpiler import release_memory as release_memory
from penstock.fluid.transpiler.ps_dispatcher import HashName as HashName
from penstock.fluid.transpiler.ps_dispatcher import PSDispatcher as PSDispatcher
from penstock.fluid.transpiler.ps_dispatcher import RoundRobin as RoundRobin
from penstock.fluid.transpiler.ps_dispatcher import SizeBalanced as SizeBalanced

__all__: list[str]
