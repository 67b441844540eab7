"""DistributeTranspiler: Fluid's interface to the transpiler, over one pure C++ call.

Fluid's scripts run default_startup_program() after transpile(), and expect get_trainer_program() to return the program
that they passed. So transpile() takes a snapshot of both programs and replaces the contents of the startup program by
the trainer's; get_trainer_program() replaces those of the main program. Getters may be called in any order, any number
of times. A second transpile() of a program that was not changed since the first starts from the snapshot.

Several main programs with one startup program train in one job (_job_programs.py).
"""

# Written by tools/dev/gen_names.py.
from penstock._src.names import facade

if facade.TYPE_CHECKING:
    from penstock._src.ir.program import Program as Program
    from penstock._src.transpile.addresses import addresses_of as addresses_of
    from penstock._src.transpile.config import DistributedMode, DistributeTranspilerConfig
    from penstock._src.transpile.distribute_transpiler import DistributeTranspiler
    from penstock._src.transpile.server_config import ServerRuntimeConfig
    from penstock._src.transpile.slices import VarBlock as VarBlock, same_or_split_var as same_or_split_var
    from penstock._src.transpile.slices import slice_variable
    from penstock.fluid import framework as framework

__all__ = [
    'DistributeTranspiler', 'DistributeTranspilerConfig', 'DistributedMode', 'ServerRuntimeConfig', 'slice_variable',
]

facade.make(__name__)
