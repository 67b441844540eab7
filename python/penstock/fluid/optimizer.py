"""The optimizers. Each class declares its op and its hyperparameters."""

# Written by tools/dev/gen_names.py.
from penstock._src.ir.variable import Variable as Variable
from penstock._src.names import facade
from penstock._src.optimizer.adaptive import (
    Adadelta as Adadelta, AdadeltaOptimizer as AdadeltaOptimizer, Adagrad as Adagrad,
    AdagradOptimizer as AdagradOptimizer, Adam as Adam, Adamax as Adamax, AdamaxOptimizer as AdamaxOptimizer,
    AdamOptimizer as AdamOptimizer, DecayedAdagrad as DecayedAdagrad,
    DecayedAdagradOptimizer as DecayedAdagradOptimizer, Ftrl as Ftrl, FtrlOptimizer as FtrlOptimizer, Lamb as Lamb,
    LambOptimizer as LambOptimizer, RMSProp as RMSProp, RMSPropOptimizer as RMSPropOptimizer,
)
from penstock._src.optimizer.averaging import (
    ExponentialMovingAverage as ExponentialMovingAverage, ModelAverage as ModelAverage,
)
from penstock._src.optimizer.base import Optimizer as Optimizer
from penstock._src.optimizer.dgc import DGCMomentumOptimizer as DGCMomentumOptimizer
from penstock._src.optimizer.optimizers import (
    SGD as SGD, Dpsgd as Dpsgd, DpsgdOptimizer as DpsgdOptimizer, LarsMomentum as LarsMomentum,
    LarsMomentumOptimizer as LarsMomentumOptimizer, Momentum as Momentum, MomentumOptimizer as MomentumOptimizer,
    SGDOptimizer as SGDOptimizer,
)
from penstock._src.optimizer.pipeline import PipelineOptimizer as PipelineOptimizer
from penstock._src.optimizer.wrappers import (
    LookaheadOptimizer as LookaheadOptimizer, RecomputeOptimizer as RecomputeOptimizer,
)
from penstock._src.parameters.regularizer import append_regularization_ops as append_regularization_ops

__all__ = [
    'Adadelta', 'AdadeltaOptimizer', 'Adagrad', 'AdagradOptimizer', 'Adam', 'AdamOptimizer', 'Adamax',
    'AdamaxOptimizer', 'DGCMomentumOptimizer', 'DecayedAdagrad', 'DecayedAdagradOptimizer', 'Dpsgd', 'DpsgdOptimizer',
    'ExponentialMovingAverage', 'Ftrl', 'FtrlOptimizer', 'Lamb', 'LambOptimizer', 'LarsMomentum',
    'LarsMomentumOptimizer', 'LookaheadOptimizer', 'ModelAverage', 'Momentum', 'MomentumOptimizer', 'Optimizer',
    'PipelineOptimizer', 'RMSProp', 'RMSPropOptimizer', 'RecomputeOptimizer', 'SGD', 'SGDOptimizer',
]

facade.make(__name__, elsewhere=('Variable', 'append_regularization_ops'))
