"""Rewrites a program to mixed precision: casts around ops, the roles of gradients, and the scaling of the loss.

Names, order and attributes of the added ops are those of Fluid 1.8.
"""

# Written by tools/dev/gen_names.py.
from penstock._src.names import facade

if facade.TYPE_CHECKING:
    from penstock._src.mixed_precision.fp16_utils import rewrite_program, update_loss_scaling, update_role_var_grad

__all__ = ['rewrite_program', 'update_loss_scaling', 'update_role_var_grad']

facade.make(__name__)
