"""Optimizers of a store, by MXNet's names.

kv.set_optimizer(penstock.kv.optimizer.create('sgd', learning_rate=0.1, momentum=0.9))
"""

# Written by tools/dev/gen_names.py.
from penstock._src.names import facade

if facade.TYPE_CHECKING:
    from penstock._src.kv.optimizer import Optimizer, create

__all__ = ['Optimizer', 'create']

facade.make(__name__)
