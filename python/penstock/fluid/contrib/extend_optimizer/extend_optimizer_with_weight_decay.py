"""Decoupled weight decay (Loshchilov and Hutter, Decoupled Weight Decay Regularization)."""

# Written by tools/dev/gen_names.py.
from penstock._src.names import facade

if facade.TYPE_CHECKING:
    from penstock._src.ir.variable import Variable as Variable
    from penstock._src.optimizer.base import Optimizer as Optimizer
    from penstock._src.optimizer.decoupled_weight_decay import DecoupledWeightDecay as DecoupledWeightDecay
    from penstock._src.optimizer.decoupled_weight_decay import extend_with_decoupled_weight_decay

__all__ = ['extend_with_decoupled_weight_decay']

facade.make(__name__)
