"""Training in mixed precision: decorate an optimizer, and choose the ops that are computed in float16."""

from penstock.fluid.contrib.mixed_precision import decorator, fp16_lists, fp16_utils
from penstock.fluid.contrib.mixed_precision.decorator import decorate
from penstock.fluid.contrib.mixed_precision.fp16_lists import AutoMixedPrecisionLists

__all__ = ['AutoMixedPrecisionLists', 'decorate']
