"""Functions that extend optimizers."""

# Written by tools/dev/gen_names.py.
from penstock._src.names import facade

if facade.TYPE_CHECKING:
    from penstock._src.optimizer.decoupled_weight_decay import extend_with_decoupled_weight_decay
    from penstock.fluid.contrib.extend_optimizer import (
        extend_optimizer_with_weight_decay as extend_optimizer_with_weight_decay,
    )

__all__ = ['extend_with_decoupled_weight_decay']

facade.make(__name__)
