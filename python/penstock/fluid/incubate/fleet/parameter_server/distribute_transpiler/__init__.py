"""The fleet for jobs with pservers, based on DistributeTranspiler.

    from penstock.fluid.incubate.fleet.base import role_maker
    from penstock.fluid.incubate.fleet.parameter_server.distribute_transpiler import StrategyFactory, fleet

    fleet.init(role_maker.PaddleCloudRoleMaker())
    optimizer = fleet.distributed_optimizer(fluid.optimizer.SGD(0.01), StrategyFactory.create_async_strategy())
    optimizer.minimize(loss)
    if fleet.is_server():
        fleet.init_server()
        fleet.run_server()                    # returns when every trainer has stopped
    else:
        fleet.init_worker()
        exe.run(fleet.startup_program)
        for batch in batches():
            exe.run(fleet.main_program, feed=batch, fetch_list=[loss])
        fleet.stop_worker()
"""

# Written by tools/dev/gen_names.py.
from penstock._src.names import facade

if facade.TYPE_CHECKING:
    from penstock._src.executor.compiler import CompiledProgram
    from penstock._src.executor.executor import Executor
    from penstock._src.executor.parallel_executor import ParallelExecutor
    from penstock._src.fleet.pserver import DistributedTranspiler, TranspilerOptimizer, fleet
    from penstock._src.ir.framework import default_main_program, default_startup_program
    from penstock._src.ir.program import Program
    from penstock._src.optimizer.base import Optimizer
    from penstock._src.transpile.communicator import Communicator
    from penstock._src.transpile.config import DistributedMode, DistributeTranspilerConfig
    from penstock._src.transpile.distribute_transpiler import DistributeTranspiler as OriginTranspiler
    from penstock._src.transpile.server_config import ServerRuntimeConfig
    from penstock.fluid import io as io
    from penstock.fluid.incubate.fleet.base.fleet_base import DistributedOptimizer, Fleet
    from penstock.fluid.incubate.fleet.base.mode import Mode
    from penstock.fluid.incubate.fleet.parameter_server.distribute_transpiler.distributed_strategy import (
        AsyncStrategy,
    )
    from penstock.fluid.incubate.fleet.parameter_server.distribute_transpiler.distributed_strategy import (
        DistributedStrategy,
    )
    from penstock.fluid.incubate.fleet.parameter_server.distribute_transpiler.distributed_strategy import GeoStrategy
    from penstock.fluid.incubate.fleet.parameter_server.distribute_transpiler.distributed_strategy import (
        HalfAsyncStrategy,
    )
    from penstock.fluid.incubate.fleet.parameter_server.distribute_transpiler.distributed_strategy import (
        StrategyFactory,
    )
    from penstock.fluid.incubate.fleet.parameter_server.distribute_transpiler.distributed_strategy import SyncStrategy
    from penstock.fluid.incubate.fleet.parameter_server.distribute_transpiler.distributed_strategy import (
        TrainerRuntimeConfig,
    )

__all__ = [
    'AsyncStrategy', 'Communicator', 'CompiledProgram', 'DistributeTranspilerConfig', 'DistributedMode',
    'DistributedOptimizer', 'DistributedStrategy', 'DistributedTranspiler', 'Executor', 'Fleet', 'GeoStrategy',
    'HalfAsyncStrategy', 'Mode', 'Optimizer', 'OriginTranspiler', 'ParallelExecutor', 'Program',
    'ServerRuntimeConfig', 'StrategyFactory', 'SyncStrategy', 'TrainerRuntimeConfig', 'TranspilerOptimizer',
    'default_main_program', 'default_startup_program', 'fleet',
]

facade.make(__name__)
