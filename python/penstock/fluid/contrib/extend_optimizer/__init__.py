"""Functions that extend optimizers."""

from penstock.fluid.contrib.extend_optimizer import extend_optimizer_with_weight_decay
from penstock.fluid.contrib.extend_optimizer.extend_optimizer_with_weight_decay import *

__all__ = extend_optimizer_with_weight_decay.__all__
