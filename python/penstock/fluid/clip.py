"""Gradient clipping: ops between the gradients and the updates.

    fluid.optimizer.SGD(0.01, grad_clip=fluid.clip.GradientClipByGlobalNorm(5.0)).minimize(loss)

set_gradient_clip() is the older interface: it marks parameters, whose gradients an optimizer without a grad_clip clips.
"""

# Written by tools/dev/gen_names.py.
from penstock._src.names import facade

if facade.TYPE_CHECKING:
    from penstock._src.optimizer.clip import GradientClipBase as GradientClipBase, GradientClipByGlobalNorm
    from penstock._src.optimizer.clip import GradientClipByNorm, GradientClipByValue
    from penstock._src.optimizer.clip import append_gradient_clip_ops as append_gradient_clip_ops, set_gradient_clip
    from penstock._src.optimizer.error_clip import BaseErrorClipAttr as BaseErrorClipAttr, ErrorClipByValue
    from penstock._src.optimizer.error_clip import clip_errors as clip_errors
    from penstock._src.optimizer.error_clip import error_clip_callback as error_clip_callback
    from penstock.fluid import framework as framework

__all__ = [
    'ErrorClipByValue', 'GradientClipByGlobalNorm', 'GradientClipByNorm', 'GradientClipByValue', 'set_gradient_clip',
]

facade.make(__name__)
