"""ParallelExecutor, which older scripts for Fluid use: a CompiledProgram with an Executor."""

# Written by tools/dev/gen_names.py.
from penstock._src.names import facade

if facade.TYPE_CHECKING:
    from penstock._src.executor.build_options import BuildStrategy as BuildStrategy
    from penstock._src.executor.build_options import ExecutionStrategy as ExecutionStrategy
    from penstock._src.executor.parallel_executor import ParallelExecutor
    from penstock.fluid import core as core, executor as executor, framework as framework

__all__ = ['ParallelExecutor']

facade.make(__name__)
