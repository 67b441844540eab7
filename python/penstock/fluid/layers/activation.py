"""Functions of single elements with attributes or slopes of their own."""

from penstock.fluid.initializer import Constant
from penstock.fluid.layer_helper import LayerHelper

__all__ = [
    'elu', 'hard_sigmoid', 'hard_swish', 'leaky_relu', 'maxout', 'prelu', 'relu6', 'stanh', 'swish',
]


def _layer(op_type, x, attrs, name):
    helper = LayerHelper(op_type, name=name).takes(x=x)
    out = helper.create_variable_for_type_inference(x.dtype)
    helper.append_op(op_type, {'X': x}, {'Out': out}, attrs)
    return out


def leaky_relu(x, alpha=0.02, name=None):
    """x where it is positive, alpha * x elsewhere."""
    return _layer('leaky_relu', x, {'alpha': alpha}, name)


def elu(x, alpha=1.0, name=None):
    """x where it is positive, alpha * (exp(x) - 1) elsewhere."""
    return _layer('elu', x, {'alpha': alpha}, name)


def relu6(x, threshold=6.0, name=None):
    """x, clipped to [0, threshold]."""
    return _layer('relu6', x, {'threshold': threshold}, name)


def stanh(x, scale_a=0.67, scale_b=1.7159, name=None):
    """scale_b * tanh(scale_a * x)"""
    return _layer('stanh', x, {'scale_a': scale_a, 'scale_b': scale_b}, name)


def hard_sigmoid(x, slope=0.2, offset=0.5, name=None):
    """slope * x + offset, clipped to [0, 1]."""
    return _layer('hard_sigmoid', x, {'slope': slope, 'offset': offset}, name)


def swish(x, beta=1.0, name=None):
    """x / (1 + exp(-beta * x))"""
    return _layer('swish', x, {'beta': beta}, name)


def hard_swish(x, threshold=6.0, scale=6.0, offset=3.0, name=None):
    """x * min(max(x + offset, 0), threshold) / scale"""
    return _layer('hard_swish', x, {'threshold': threshold, 'scale': scale, 'offset': offset}, name)


def maxout(x, groups, name=None, axis=1):
    """Of each group of neighbouring channels the largest."""
    if axis not in (1, -1, 3):
        raise ValueError('axis must be 1, -1 or 3, not %r' % (axis,))
    return _layer('maxout', x, {'groups': groups, 'axis': 3 if axis == -1 else axis}, name)


def prelu(x, mode, param_attr=None, name=None):
    """x where it is positive, elsewhere x times a slope that is learned: one for all, a channel, or an element."""
    if mode not in ('all', 'channel', 'element'):
        raise ValueError('prelu: mode must be all, channel or element, not %r' % (mode,))
    helper = LayerHelper('prelu', param_attr=param_attr, name=name).takes(x=x)
    if mode == 'channel' and len(x.shape) < 2:
        raise ValueError('a slope for each channel wants x with channels; its shape is %s' % (x.shape,))
    shape = {'all': [1], 'channel': [1, *x.shape[1:2], 1, 1], 'element': [1, *x.shape[1:]]}[mode]
    slopes = helper.create_parameter(helper.param_attr, shape, 'float32', default_initializer=Constant(0.25))
    out = helper.create_variable_for_type_inference(x.dtype)
    helper.append_op('prelu', {'X': x, 'Alpha': slopes}, {'Out': out}, {'mode': mode})
    return out
