"""Nets of several layers."""

from penstock.fluid import layers

__all__ = ['img_conv_group', 'simple_img_conv_pool']


def simple_img_conv_pool(input, num_filters, filter_size, pool_size, pool_stride, pool_padding=0, pool_type='max',
                         global_pooling=False, conv_stride=1, conv_padding=0, conv_dilation=1, conv_groups=1,
                         param_attr=None, bias_attr=None, act=None, use_cudnn=True):
    """A convolution, then a pooling."""
    features = layers.conv2d(input, num_filters, filter_size, conv_stride, conv_padding, conv_dilation, conv_groups,
                             param_attr, bias_attr, use_cudnn, act)
    return layers.pool2d(features, pool_size, pool_type, pool_stride, pool_padding, global_pooling, use_cudnn)


def img_conv_group(input, conv_num_filter, pool_size, conv_padding=1, conv_filter_size=3, conv_act=None,
                   param_attr=None, conv_with_batchnorm=False, conv_batchnorm_drop_rate=0.0, pool_stride=1,
                   pool_type='max',
                   use_cudnn=True):
    """Convolutions (each with batch norm and dropout if asked), then a pooling. What is no list is for each."""
    count = len(conv_num_filter)

    def each(value):
        if not isinstance(value, (list, tuple)):
            return [value] * count
        if len(value) != count:
            raise ValueError('%d values for %d convolutions' % (len(value), count))
        return list(value)

    paddings, sizes, attrs = each(conv_padding), each(conv_filter_size), each(param_attr)
    with_norm, drop_rates = each(conv_with_batchnorm), each(conv_batchnorm_drop_rate)
    out = input
    for i in range(count):
        act = None if with_norm[i] else conv_act
        out = layers.conv2d(out, conv_num_filter[i], sizes[i], padding=paddings[i], param_attr=attrs[i],
                            use_cudnn=use_cudnn, act=act)
        if with_norm[i]:
            out = layers.batch_norm(out, act=conv_act)
            if abs(drop_rates[i]) > 1e-5:
                out = layers.dropout(out, drop_rates[i])
    return layers.pool2d(out, pool_size, pool_type, pool_stride, use_cudnn=use_cudnn)
