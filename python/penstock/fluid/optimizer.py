"""The optimizers. Each class declares its op and its hyperparameters."""

# Written by tools/dev/gen_names.py.
from penstock._src.names import facade

if facade.TYPE_CHECKING:
    from penstock._src.ir.variable import Variable as Variable
    from penstock._src.optimizer.adaptive import Adadelta as Adadelta, AdadeltaOptimizer as AdadeltaOptimizer
    from penstock._src.optimizer.adaptive import Adagrad as Adagrad, AdagradOptimizer as AdagradOptimizer
    from penstock._src.optimizer.adaptive import Adam as Adam, Adamax as Adamax, AdamaxOptimizer as AdamaxOptimizer
    from penstock._src.optimizer.adaptive import AdamOptimizer as AdamOptimizer, DecayedAdagrad as DecayedAdagrad
    from penstock._src.optimizer.adaptive import DecayedAdagradOptimizer as DecayedAdagradOptimizer, Ftrl as Ftrl
    from penstock._src.optimizer.adaptive import FtrlOptimizer as FtrlOptimizer, Lamb as Lamb
    from penstock._src.optimizer.adaptive import LambOptimizer as LambOptimizer, RMSProp as RMSProp
    from penstock._src.optimizer.adaptive import RMSPropOptimizer as RMSPropOptimizer
    from penstock._src.optimizer.averaging import ExponentialMovingAverage as ExponentialMovingAverage
    from penstock._src.optimizer.averaging import ModelAverage as ModelAverage
    from penstock._src.optimizer.base import Optimizer as Optimizer
    from penstock._src.optimizer.dgc import DGCMomentumOptimizer as DGCMomentumOptimizer
    from penstock._src.optimizer.optimizers import SGD as SGD, Dpsgd as Dpsgd, DpsgdOptimizer as DpsgdOptimizer
    from penstock._src.optimizer.optimizers import LarsMomentum as LarsMomentum
    from penstock._src.optimizer.optimizers import LarsMomentumOptimizer as LarsMomentumOptimizer
    from penstock._src.optimizer.optimizers import Momentum as Momentum, MomentumOptimizer as MomentumOptimizer
    from penstock._src.optimizer.optimizers import SGDOptimizer as SGDOptimizer
    from penstock._src.optimizer.pipeline import PipelineOptimizer as PipelineOptimizer
    from penstock._src.optimizer.wrappers import LookaheadOptimizer as LookaheadOptimizer
    from penstock._src.optimizer.wrappers import RecomputeOptimizer as RecomputeOptimizer
    from penstock._src.parameters.regularizer import append_regularization_ops as append_regularization_ops

__all__ = [
    'Adadelta', 'AdadeltaOptimizer', 'Adagrad', 'AdagradOptimizer', 'Adam', 'AdamOptimizer', 'Adamax',
    'AdamaxOptimizer', 'DGCMomentumOptimizer', 'DecayedAdagrad', 'DecayedAdagradOptimizer', 'Dpsgd', 'DpsgdOptimizer',
    'ExponentialMovingAverage', 'Ftrl', 'FtrlOptimizer', 'Lamb', 'LambOptimizer', 'LarsMomentum',
    'LarsMomentumOptimizer', 'LookaheadOptimizer', 'ModelAverage', 'Momentum', 'MomentumOptimizer', 'Optimizer',
    'PipelineOptimizer', 'RMSProp', 'RMSPropOptimizer', 'RecomputeOptimizer', 'SGD', 'SGDOptimizer',
]

facade.make(__name__)
