"""Training in float16, which needs kernels on GPUs."""

from penstock.fluid.contrib.mixed_precision import decorator
from penstock.fluid.contrib.mixed_precision.decorator import decorate

__all__ = ['decorate']
