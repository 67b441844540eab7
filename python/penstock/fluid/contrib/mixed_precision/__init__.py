"""Training in mixed precision: decorate an optimizer, and choose the ops that are computed in float16."""

# Written by tools/dev/gen_names.py.
from penstock._src.names import facade

if facade.TYPE_CHECKING:
    from penstock._src.mixed_precision.decorator import decorate
    from penstock._src.mixed_precision.fp16_lists import AutoMixedPrecisionLists
    from penstock.fluid.contrib.mixed_precision import decorator as decorator, fp16_lists as fp16_lists
    from penstock.fluid.contrib.mixed_precision import fp16_utils as fp16_utils

__all__ = ['AutoMixedPrecisionLists', 'decorate']

facade.make(__name__)
