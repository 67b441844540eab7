"""DistributeTranspiler and its configuration."""

from penstock.fluid.transpiler import distribute_transpiler, ps_dispatcher
from penstock.fluid.transpiler.distribute_transpiler import DistributeTranspiler, DistributeTranspilerConfig
from penstock.fluid.transpiler.ps_dispatcher import HashName, RoundRobin

__all__ = ['DistributeTranspiler', 'DistributeTranspilerConfig', 'HashName', 'RoundRobin']
