"""Schedules of the learning rate, by the number of updates, with MXNet's arguments.

schedule = penstock.kv.lr_scheduler.FactorScheduler(step=1000, factor=0.9)
kv.set_optimizer(penstock.kv.optimizer.create('sgd', learning_rate=0.1, lr_scheduler=schedule))
"""

# Written by tools/dev/gen_names.py.
from penstock._src.names import facade

if facade.TYPE_CHECKING:
    from penstock._src.kv.lr_scheduler import CosineScheduler, FactorScheduler, LRScheduler, MultiFactorScheduler
    from penstock._src.kv.lr_scheduler import PolyScheduler

__all__ = ['CosineScheduler', 'FactorScheduler', 'LRScheduler', 'MultiFactorScheduler', 'PolyScheduler']

facade.make(__name__)
