"""Networks that combine several layers."""

# Written by tools/dev/gen_names.py.
from penstock._src.names import facade

if facade.TYPE_CHECKING:
    from penstock._src.layers.nets import glu, img_conv_group, scaled_dot_product_attention, sequence_conv_pool
    from penstock._src.layers.nets import simple_img_conv_pool
    from penstock.fluid import layers as layers

__all__ = ['glu', 'img_conv_group', 'scaled_dot_product_attention', 'sequence_conv_pool', 'simple_img_conv_pool']

facade.make(__name__)
