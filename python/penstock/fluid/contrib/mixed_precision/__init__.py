"""Training in float16, which Penstock does not support."""

from penstock.fluid.contrib.mixed_precision import decorator
from penstock.fluid.contrib.mixed_precision.decorator import decorate

__all__ = ['decorate']
