"""The layers of LoD sequences under their name in Fluid: fluid.layers.sequence_lod.NAME is fluid.layers.NAME."""

# Written by tools/dev/gen_names.py.
from penstock._src.names import facade

if facade.TYPE_CHECKING:
    from penstock._src.layers.sequence import sequence_concat, sequence_conv, sequence_enumerate, sequence_expand
    from penstock._src.layers.sequence import sequence_expand_as, sequence_first_step, sequence_last_step
    from penstock._src.layers.sequence import sequence_pool, sequence_reshape, sequence_reverse, sequence_scatter
    from penstock._src.layers.sequence import sequence_slice, sequence_softmax
    from penstock._src.layers.sequence_padding import sequence_mask, sequence_pad, sequence_unpad

__all__ = [
    'sequence_concat', 'sequence_conv', 'sequence_enumerate', 'sequence_expand', 'sequence_expand_as',
    'sequence_first_step', 'sequence_last_step', 'sequence_mask', 'sequence_pad', 'sequence_pool', 'sequence_reshape',
    'sequence_reverse', 'sequence_scatter', 'sequence_slice', 'sequence_softmax', 'sequence_unpad',
]

facade.make(__name__)
