"""The fleet for jobs of equal ranks, based on the transpiler's collective modes.

    from penstock.fluid.incubate.fleet.base import role_maker
    from penstock.fluid.incubate.fleet.collective import DistributedStrategy, fleet

    fleet.init(role_maker.PaddleCloudRoleMaker(is_collective=True))
    optimizer = fleet.distributed_optimizer(fluid.optimizer.SGD(0.01), DistributedStrategy())
    optimizer.minimize(loss)
    exe.run(fleet.startup_program)
    for batch in my_batches():
        exe.run(fleet.main_program, feed=batch, fetch_list=[loss])
"""

# Written by tools/dev/gen_names.py.
from penstock._src.names import facade

if facade.TYPE_CHECKING:
    from penstock._src.executor.compiler import CompiledProgram
    from penstock._src.executor.executor import Executor
    from penstock._src.executor.parallel_executor import ParallelExecutor
    from penstock._src.fleet.checkpoints import TrainStatus
    from penstock._src.fleet.collective import Collective, CollectiveOpBasedOptimizer, CollectiveOptimizer, fleet
    from penstock._src.fleet.collective_strategy import DistFCConfig, DistributedStrategy, LambConfig
    from penstock._src.ir.program import Program
    from penstock.fluid import io as io
    from penstock.fluid.incubate.fleet.base.fleet_base import DistributedOptimizer, Fleet
    from penstock.fluid.incubate.fleet.base.mode import Mode
    from penstock.fluid.incubate.fleet.utils.fs import BDFS, LocalFS

__all__ = [
    'BDFS', 'Collective', 'CollectiveOpBasedOptimizer', 'CollectiveOptimizer', 'CompiledProgram', 'DistFCConfig',
    'DistributedOptimizer', 'DistributedStrategy', 'Executor', 'Fleet', 'LambConfig', 'LocalFS', 'Mode',
    'ParallelExecutor', 'Program', 'TrainStatus', 'fleet',
]

facade.make(__name__)
