"""Strategies: how trainers and pservers work together, and the settings of each.

    strategy = StrategyFactory.create_async_strategy()
    fleet.distributed_optimizer(optimizer, strategy).minimize(loss)
"""

# Written by tools/dev/gen_names.py.
from penstock._src.names import facade

if facade.TYPE_CHECKING:
    from penstock._src.fleet.runtime_config import TrainerRuntimeConfig
    from penstock._src.fleet.strategies import AsyncStrategy, DistributedStrategy, GeoStrategy, HalfAsyncStrategy
    from penstock._src.fleet.strategies import StrategyFactory, SyncStrategy
    from penstock._src.transpile.config import DistributedMode as DistributedMode
    from penstock._src.transpile.config import DistributeTranspilerConfig as DistributeTranspilerConfig
    from penstock._src.transpile.server_config import ServerRuntimeConfig as ServerRuntimeConfig

__all__ = [
    'AsyncStrategy', 'DistributedStrategy', 'GeoStrategy', 'HalfAsyncStrategy', 'StrategyFactory', 'SyncStrategy',
    'TrainerRuntimeConfig',
]

facade.make(__name__)
