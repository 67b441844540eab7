"""The optimizers. Each class declares its op and its hyperparameters."""

# Written by tools/dev/gen_names.py.
from penstock._src.names import facade

if facade.TYPE_CHECKING:
    from penstock._src.ir.variable import Variable as Variable
    from penstock._src.optimizer.adaptive import Adadelta, AdadeltaOptimizer, Adagrad, AdagradOptimizer, Adam, Adamax
    from penstock._src.optimizer.adaptive import AdamaxOptimizer, AdamOptimizer, DecayedAdagrad
    from penstock._src.optimizer.adaptive import DecayedAdagradOptimizer, Ftrl, FtrlOptimizer, Lamb, LambOptimizer
    from penstock._src.optimizer.adaptive import RMSProp, RMSPropOptimizer
    from penstock._src.optimizer.averaging import ExponentialMovingAverage, ModelAverage
    from penstock._src.optimizer.base import Optimizer
    from penstock._src.optimizer.dgc import DGCMomentumOptimizer
    from penstock._src.optimizer.optimizers import SGD, Dpsgd, DpsgdOptimizer, LarsMomentum, LarsMomentumOptimizer
    from penstock._src.optimizer.optimizers import Momentum, MomentumOptimizer, SGDOptimizer
    from penstock._src.optimizer.pipeline import PipelineOptimizer
    from penstock._src.optimizer.wrappers import LookaheadOptimizer, RecomputeOptimizer
    from penstock._src.parameters.regularizer import append_regularization_ops as append_regularization_ops

__all__ = [
    'Adadelta', 'AdadeltaOptimizer', 'Adagrad', 'AdagradOptimizer', 'Adam', 'AdamOptimizer', 'Adamax',
    'AdamaxOptimizer', 'DGCMomentumOptimizer', 'DecayedAdagrad', 'DecayedAdagradOptimizer', 'Dpsgd', 'DpsgdOptimizer',
    'ExponentialMovingAverage', 'Ftrl', 'FtrlOptimizer', 'Lamb', 'LambOptimizer', 'LarsMomentum',
    'LarsMomentumOptimizer', 'LookaheadOptimizer', 'ModelAverage', 'Momentum', 'MomentumOptimizer', 'Optimizer',
    'PipelineOptimizer', 'RMSProp', 'RMSPropOptimizer', 'RecomputeOptimizer', 'SGD', 'SGDOptimizer',
]

facade.make(__name__)
