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
    from penstock._src.executor.compiler import CompiledProgram as CompiledProgram
    from penstock._src.executor.executor import Executor as Executor
    from penstock._src.executor.parallel_executor import ParallelExecutor as ParallelExecutor
    from penstock._src.fleet.pserver import DistributedTranspiler as DistributedTranspiler
    from penstock._src.fleet.pserver import TranspilerOptimizer as TranspilerOptimizer, fleet as fleet
    from penstock._src.ir.framework import default_main_program as default_main_program
    from penstock._src.ir.framework import default_startup_program as default_startup_program
    from penstock._src.ir.program import Program as Program
    from penstock._src.optimizer.base import Optimizer as Optimizer
    from penstock._src.transpile.communicator import Communicator as Communicator
    from penstock._src.transpile.config import DistributedMode as DistributedMode
    from penstock._src.transpile.config import DistributeTranspilerConfig as DistributeTranspilerConfig
    from penstock._src.transpile.distribute_transpiler import DistributeTranspiler as OriginTranspiler
    from penstock._src.transpile.server_config import ServerRuntimeConfig as ServerRuntimeConfig
    from penstock.fluid import io as io
    from penstock.fluid.incubate.fleet.base.fleet_base import DistributedOptimizer as DistributedOptimizer
    from penstock.fluid.incubate.fleet.base.fleet_base import Fleet as Fleet
    from penstock.fluid.incubate.fleet.base.mode import Mode as Mode
    from penstock.fluid.incubate.fleet.parameter_server.distribute_transpiler.distributed_strategy import (
        AsyncStrategy as AsyncStrategy,
    )
    from penstock.fluid.incubate.fleet.parameter_server.distribute_transpiler.distributed_strategy import (
        DistributedStrategy as DistributedStrategy,
    )
    from penstock.fluid.incubate.fleet.parameter_server.distribute_transpiler.distributed_strategy import (
        GeoStrategy as GeoStrategy,
    )
    from penstock.fluid.incubate.fleet.parameter_server.distribute_transpiler.distributed_strategy import (
        HalfAsyncStrategy as HalfAsyncStrategy,
    )
    from penstock.fluid.incubate.fleet.parameter_server.distribute_transpiler.distributed_strategy import (
        StrategyFactory as StrategyFactory,
    )
    from penstock.fluid.incubate.fleet.parameter_server.distribute_transpiler.distributed_strategy import (
        SyncStrategy as SyncStrategy,
    )
    from penstock.fluid.incubate.fleet.parameter_server.distribute_transpiler.distributed_strategy import (
        TrainerRuntimeConfig as TrainerRuntimeConfig,
    )

__all__ = [
    'AsyncStrategy', 'Communicator', 'CompiledProgram', 'DistributeTranspilerConfig', 'DistributedMode',
    'DistributedOptimizer', 'DistributedStrategy', 'DistributedTranspiler', 'Executor', 'Fleet', 'GeoStrategy',
    'HalfAsyncStrategy', 'Mode', 'Optimizer', 'OriginTranspiler', 'ParallelExecutor', 'Program',
    'ServerRuntimeConfig', 'StrategyFactory', 'SyncStrategy', 'TrainerRuntimeConfig', 'TranspilerOptimizer',
    'default_main_program', 'default_startup_program', 'fleet',
]

facade.make(__name__)
