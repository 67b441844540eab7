"""Parts of tensors, repeated, framed and put together."""

from penstock.fluid.framework import Variable
from penstock.fluid.layer_helper import LayerHelper
from penstock.fluid.layers.tensor import int_list, is_array, join_array

__all__ = ['expand', 'gather', 'pad', 'pad2d', 'reverse', 'shape', 'slice', 'stack', 'strided_slice']


def shape(input):
    """The extents of a tensor, as a tensor of int32."""
    helper = LayerHelper('shape')
    out = helper.create_variable_for_type_inference('int32')
    helper.append_op('shape', {'Input': input}, {'Out': out})
    return out


def slice(input, axes, starts, ends):
    """The box [starts, ends) along `axes`; a negative number counts from the end. Numbers may be Variables."""
    return _cut('slice', input, axes, (('starts', starts), ('ends', ends)), flag_of_whole=-1)


def strided_slice(input, axes, starts, ends, strides):
    """Every strides[i]-th element of [starts[i], ends[i]) along axes[i]; backwards from starts[i] where that is
    negative. Numbers may be Variables."""
    return _cut('strided_slice', input, axes, (('starts', starts), ('ends', ends), ('strides', strides)),
                flag_of_whole=1)


def _cut(op, input, axes, bounds, flag_of_whole):
    """flag_of_whole: what Fluid's infer_flags say of all axes where one Variable has the numbers of them all."""
    helper = LayerHelper(op).takes(input=input)
    inputs, attrs = {'Input': input}, {'axes': list(axes)}
    flags = [1] * len(axes)
    for name, given in bounds:
        slot = '%sTensor' % name.capitalize()
        if isinstance(given, Variable):
            given.stop_gradient = True
            inputs[slot] = given
            flags = [min(flag, flag_of_whole) for flag in flags]
            continue
        attrs[name], variables = int_list(helper, given)
        if variables:
            inputs[slot + 'List'] = variables
            flags = [-1 if isinstance(one, Variable) else flag for one, flag in zip(given, flags)]
    attrs['infer_flags'] = flags
    out = helper.create_variable_for_type_inference(input.dtype)
    helper.append_op(op, inputs, {'Out': out}, attrs)
    return out


def reverse(x, axis):
    """x with the order of elements along each axis in `axis` turned round."""
    helper = LayerHelper('reverse').takes(x=x)
    out = helper.create_variable_for_type_inference(x.dtype)
    helper.append_op('reverse', {'X': x}, {'Out': out}, {'axis': [axis] if isinstance(axis, int) else list(axis)})
    return out


def expand(x, expand_times, name=None):
    """x laid side by side with itself, expand_times[i] times along axis i. Numbers may be Variables."""
    helper = LayerHelper('expand', name=name).takes(x=x)
    inputs, attrs = {'X': x}, {}
    if isinstance(expand_times, Variable):
        expand_times.stop_gradient = True
        inputs['ExpandTimes'] = expand_times
    else:
        attrs['expand_times'], variables = int_list(helper, expand_times)
        if variables:
            inputs['expand_times_tensor'] = variables
    out = helper.create_variable_for_type_inference(x.dtype)
    helper.append_op('expand', inputs, {'Out': out}, attrs)
    return out


def gather(input, index, overwrite=True):
    """Rows by their numbers. With overwrite the gradient of a row that is taken twice is the last one alone."""
    helper = LayerHelper('gather').takes(input=input)
    out = helper.create_variable_for_type_inference(input.dtype)
    helper.append_op('gather', {'X': input, 'Index': index}, {'Out': out}, {'overwrite': overwrite})
    return out


def stack(x, axis=0):
    """Tensors of one shape, or the elements of one array, as one, with a new axis at `axis`."""
    helper = LayerHelper('stack', input=x)
    parts = helper.multiple_input()
    out = helper.create_variable_for_type_inference(parts[0].dtype)
    if is_array(parts):
        return join_array(helper, parts[0], out, axis, use_stack=True)
    helper.append_op('stack', {'X': parts}, {'Y': out}, {'axis': axis})
    return out


def pad(x, paddings, pad_value=0.0, name=None):
    """A frame of pad_value: two numbers an axis, before and after it."""
    helper = LayerHelper('pad', name=name).takes(x=x)
    out = helper.create_variable_for_type_inference(x.dtype)
    helper.append_op('pad', {'X': x}, {'Out': out}, {'paddings': list(paddings), 'pad_value': float(pad_value)})
    return out


def pad2d(input, paddings=[0, 0, 0, 0], mode='constant', pad_value=0.0, data_format='NCHW', name=None):
    """A frame around images: of pad_value, of the nearest elements ('edge'), or mirrored ('reflect')."""
    helper = LayerHelper('pad2d', name=name).takes(input=input)
    inputs, attrs = {'X': input}, {'mode': mode, 'pad_value': float(pad_value), 'data_format': data_format}
    if isinstance(paddings, Variable):
        inputs['Paddings'] = paddings
        attrs['paddings'] = []
    else:
        attrs['paddings'] = list(paddings)
    out = helper.create_variable_for_type_inference(input.dtype)
    helper.append_op('pad2d', inputs, {'Out': out}, attrs)
    return out
