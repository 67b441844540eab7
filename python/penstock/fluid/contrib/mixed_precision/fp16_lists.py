"""AutoMixedPrecisionLists: which ops a program in mixed precision computes in float16."""

# Written by tools/dev/gen_names.py.
from penstock._src.names import facade

if facade.TYPE_CHECKING:
    from penstock._src.mixed_precision.fp16_lists import AutoMixedPrecisionLists, black_list as black_list
    from penstock._src.mixed_precision.fp16_lists import gray_list as gray_list, white_list as white_list

__all__ = ['AutoMixedPrecisionLists']

facade.make(__name__)
