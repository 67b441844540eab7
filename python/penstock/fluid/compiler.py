"""CompiledProgram and its options, for Fluid's scripts. The Executor compiles every program at its first run, so a
CompiledProgram adds only this: runs on several places, with a feed and a result for each, and the exchange of gradients
between trainers."""

# Written by tools/dev/gen_names.py.
from penstock._src.names import facade

if facade.TYPE_CHECKING:
    from penstock._src.executor.build_options import BuildStrategy, ExecutionStrategy
    from penstock._src.executor.compiler import CompiledProgram
    from penstock.fluid import core as core, framework as framework

__all__ = ['BuildStrategy', 'CompiledProgram', 'ExecutionStrategy']

facade.make(__name__)
