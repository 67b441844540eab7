"""Arithmetic on whole tensors: element by element, along extents, truth values."""

from penstock.fluid import unique_name
from penstock.fluid.framework import Variable
from penstock.fluid.layer_helper import LayerHelper

__all__ = [
    'clip', 'clip_by_norm', 'elementwise_add', 'elementwise_div', 'elementwise_floordiv', 'elementwise_max',
    'elementwise_min', 'elementwise_mod', 'elementwise_mul', 'elementwise_pow', 'elementwise_sub', 'logical_and',
    'logical_not', 'logical_or', 'logical_xor', 'mean', 'pow', 'reduce_max', 'reduce_mean', 'reduce_min',
    'reduce_prod', 'reduce_sum', 'scale',
]


def mean(x, name=None):
    """The mean of all elements."""
    helper = LayerHelper('mean', name=name).takes(x=x)
    out = helper.create_variable_for_type_inference(x.dtype)
    helper.append_op('mean', {'X': x}, {'Out': out})
    return out


def scale(x, scale=1.0, bias=0.0, bias_after_scale=True, act=None, name=None):
    helper = LayerHelper('scale', act=act, name=name).takes(x=x)
    out = helper.create_variable_for_type_inference(x.dtype)
    inputs = {'X': x}
    attrs = {'bias': float(bias), 'bias_after_scale': bias_after_scale}
    if isinstance(scale, Variable):
        inputs['ScaleTensor'] = scale
    else:
        attrs['scale'] = float(scale)
    helper.append_op('scale', inputs, {'Out': out}, attrs)
    return helper.append_activation(out)


def clip(x, min, max, name=None):
    return _clipping('clip', x, {'min': min, 'max': max}, name)


def clip_by_norm(x, max_norm, name=None):
    """x, made shorter if the root of the sum of its squares is above max_norm."""
    return _clipping('clip_by_norm', x, {'max_norm': max_norm}, name)


def _clipping(op_type, x, attrs, name):
    """The result has the very name that was asked for."""
    helper = LayerHelper(op_type, name=name).takes(x=x)
    if name is None:
        name = unique_name.generate(helper.name + '.tmp')
    out = helper.create_variable(name=name, type=x.type, dtype=x.dtype)
    helper.append_op(op_type, {'X': x}, {'Out': out}, attrs)
    return out


def pow(x, factor=1.0, name=None):
    """x to the power of a number, or of a Variable of one element."""
    helper = LayerHelper('pow', name=name).takes(x=x)
    inputs, attrs = {'X': x}, {}
    if isinstance(factor, Variable):
        inputs['FactorTensor'] = factor
    else:
        attrs['factor'] = factor
    out = helper.create_variable_for_type_inference(x.dtype)
    helper.append_op('pow', inputs, {'Out': out}, attrs)
    return out


def _logical(op_type, inputs, out, name):
    helper = LayerHelper(op_type, name=name)
    if out is None:
        out = helper.create_variable_for_type_inference('bool')
    helper.append_op(op_type, inputs, {'Out': out})
    return out


def logical_and(x, y, out=None, name=None):
    return _logical('logical_and', {'X': x, 'Y': y}, out, name)


def logical_or(x, y, out=None, name=None):
    return _logical('logical_or', {'X': x, 'Y': y}, out, name)


def logical_xor(x, y, out=None, name=None):
    return _logical('logical_xor', {'X': x, 'Y': y}, out, name)


def logical_not(x, out=None, name=None):
    return _logical('logical_not', {'X': x}, out, name)


def _elementwise(op_type):

    def layer(x, y, axis=-1, act=None, name=None):
        helper = LayerHelper(op_type, act=act, name=name).takes(x=x)
        out = helper.create_variable_for_type_inference(x.dtype)
        helper.append_op(op_type, {'X': x, 'Y': y}, {'Out': out}, {'axis': axis, 'use_mkldnn': False})
        return helper.append_activation(out)

    layer.__name__ = op_type
    layer.__doc__ = 'The op %s; y is repeated over the axes of x that it lacks, from `axis` on.' % op_type
    return layer


elementwise_add = _elementwise('elementwise_add')
elementwise_sub = _elementwise('elementwise_sub')
elementwise_mul = _elementwise('elementwise_mul')
elementwise_div = _elementwise('elementwise_div')
elementwise_max = _elementwise('elementwise_max')
elementwise_min = _elementwise('elementwise_min')
elementwise_pow = _elementwise('elementwise_pow')
elementwise_mod = _elementwise('elementwise_mod')
elementwise_floordiv = _elementwise('elementwise_floordiv')


def _reduce(op_type):

    def layer(input, dim=None, keep_dim=False, name=None):
        helper = LayerHelper(op_type, name=name).takes(input=input)
        out = helper.create_variable_for_type_inference(input.dtype)
        if dim is not None and not isinstance(dim, (list, tuple)):
            dim = [dim]
        helper.append_op(op_type, {'X': input}, {'Out': out}, {
            'dim': list(dim) if dim else [0],
            'keep_dim': keep_dim,
            'reduce_all': not dim
        })
        return out

    layer.__name__ = op_type
    layer.__doc__ = 'The op %s over the axes `dim`, or over all.' % op_type
    return layer


reduce_sum = _reduce('reduce_sum')
reduce_mean = _reduce('reduce_mean')
reduce_max = _reduce('reduce_max')
reduce_min = _reduce('reduce_min')
reduce_prod = _reduce('reduce_prod')
