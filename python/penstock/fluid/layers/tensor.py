"""Making, casting and joining tensors."""

import operator

import numpy

from penstock.fluid.core import VarType, dtype_name, to_dtype
from penstock.fluid.framework import Variable
from penstock.fluid.initializer import VALUES_MAX, Constant
from penstock.fluid.layer_helper import LayerHelper, describe
from penstock.fluid.param_attr import ParamAttr

__all__ = [
    'argmax', 'argmin', 'argsort', 'assign', 'cast', 'concat', 'create_global_var', 'create_parameter',
    'create_tensor', 'fill_constant', 'fill_constant_batch_size_like', 'gaussian_random', 'has_inf', 'has_nan',
    'isfinite', 'ones', 'range', 'sum', 'sums', 'uniform_random', 'zeros',
]


def create_tensor(dtype, name=None, persistable=False):
    helper = LayerHelper('create_tensor', name=name)
    return helper.create_variable(name=helper.name, dtype=dtype, persistable=persistable)


def create_parameter(shape, dtype, name=None, attr=None, is_bias=False, default_initializer=None):
    helper = LayerHelper('create_parameter', name=name)
    attr = ParamAttr(name=name) if attr is None else attr
    return helper.create_parameter(attr, list(shape), to_dtype(dtype), is_bias, default_initializer)


def create_global_var(shape, value, dtype, persistable=False, force_cpu=False, name=None):
    helper = LayerHelper('global_var', name=name)
    var = helper.create_global_variable(dtype=dtype, shape=list(shape), persistable=persistable, name=name,
                                        stop_gradient=True)
    helper.set_variable_initializer(var, Constant(float(value), force_cpu))
    return var


def int_list(helper, numbers, dtype='int32'):
    """(attribute, Variables of one element) for numbers some of which may be Variables; no Variables if none is."""

    def constant(number):
        return fill_constant([1], dtype, number, force_cpu=True, out=helper.create_variable_for_type_inference(dtype))

    return _int_list(helper, numbers, given=lambda var: var, constant=constant)


def _int_list(helper, numbers, given, constant):
    """As int_list; `given` and `constant` make the Variables, of a Variable and of a number."""
    attr = []
    for one in numbers:
        if isinstance(one, Variable):
            one.stop_gradient = True
        try:
            attr.append(-1 if isinstance(one, Variable) else operator.index(one))
        except TypeError:
            raise TypeError('%s: %r must be an int or a Variable' % (helper.layer_type, one)) from None
    if not any(isinstance(one, Variable) for one in numbers):
        return attr, []
    return attr, [given(one) if isinstance(one, Variable) else constant(one) for one in numbers]


def _shape_inputs(helper, shape):
    """(slots, attribute) of a shape that may be a Variable, or hold some; those of int64 are cast."""

    def int32(var):
        return cast(var, 'int32') if var.dtype == VarType.INT64 else var

    if isinstance(shape, Variable):
        shape.stop_gradient = True
        return {'ShapeTensor': int32(shape)}, []
    attr, variables = _int_list(helper, shape, given=int32,
                                constant=lambda number: fill_constant([1], 'int32', number, force_cpu=True))
    return {'ShapeTensorList': variables} if variables else {}, attr


def fill_constant(shape, dtype, value, force_cpu=False, out=None):
    """A tensor of one value; its shape may be a Variable, or hold some, and the value may be one of one element."""
    helper = LayerHelper('fill_constant')
    dtype = to_dtype(dtype)
    if out is not None and helper.takes(out=out) and out.dtype != dtype:
        raise TypeError('fill_constant: out (%s) is %s, not %s' % (out.name, dtype_name(out.dtype), dtype_name(dtype)))
    attrs = {'force_cpu': force_cpu}
    inputs, attrs['shape'] = _shape_inputs(helper, shape)
    if isinstance(value, Variable):
        inputs['ValueTensor'] = value
    else:
        attrs.update(value=float(value), str_value=_text_of(value, dtype))
    if out is None:
        out = helper.create_variable_for_type_inference(dtype)
    attrs['dtype'] = int(out.dtype)
    helper.append_op('fill_constant', inputs, {'Out': out}, attrs)
    out.stop_gradient = True
    return out


def fill_constant_batch_size_like(input, shape, dtype, value, input_dim_idx=0, output_dim_idx=0, force_cpu=False):
    """fill_constant, but for one extent, which is the input's."""
    helper = LayerHelper('fill_constant_batch_size_like')
    dtype = to_dtype(dtype)
    out = helper.create_variable_for_type_inference(dtype)
    helper.append_op(
        'fill_constant_batch_size_like', {'Input': input}, {'Out': out}, {
            'shape': list(shape),
            'dtype': int(dtype),
            'value': float(value),
            'str_value': _text_of(value, dtype),
            'input_dim_idx': input_dim_idx,
            'output_dim_idx': output_dim_idx,
            'force_cpu': force_cpu
        })
    out.stop_gradient = True
    return out


def _text_of(value, dtype):
    """The value as an op's str_value, which holds an int64 that a float cannot."""
    return str(int(value)) if dtype in (VarType.INT64, VarType.INT32) else str(float(value))


def zeros(shape, dtype, force_cpu=False):
    return fill_constant(shape, dtype, 0.0, force_cpu)


def ones(shape, dtype, force_cpu=False):
    return fill_constant(shape, dtype, 1.0, force_cpu)


def uniform_random(shape, dtype='float32', min=-1.0, max=1.0, seed=0):
    """Random numbers, all equally likely between min and max; without a seed, other ones in each run."""
    helper = LayerHelper('uniform_random')
    inputs = {}
    if isinstance(shape, Variable):
        shape.stop_gradient = True
        inputs['ShapeTensor'], shape = shape, []
    else:
        shape, variables = int_list(helper, shape, 'int64')
        if variables:
            inputs['ShapeTensorList'] = variables
    return _random(helper, inputs, dtype, {'shape': shape, 'min': min, 'max': max, 'seed': seed})


def gaussian_random(shape, mean=0.0, std=1.0, seed=0, dtype='float32'):
    """Random numbers of a normal distribution; without a seed, other ones in each run."""
    helper = LayerHelper('gaussian_random')
    inputs, shape = _shape_inputs(helper, shape)
    return _random(helper, inputs, dtype, {'shape': shape, 'mean': mean, 'std': std, 'seed': seed})


def _random(helper, inputs, dtype, attrs):
    dtype = to_dtype(dtype)
    out = helper.create_variable_for_type_inference(dtype)
    helper.append_op(helper.layer_type, inputs, {'Out': out}, dict(attrs, dtype=int(dtype)))
    return out


def cast(x, dtype):
    helper = LayerHelper('cast').takes(x=x)
    dtype = to_dtype(dtype)
    out = helper.create_variable_for_type_inference(dtype)
    helper.append_op('cast', {'X': x}, {'Out': out}, {'in_dtype': int(x.dtype), 'out_dtype': int(dtype)})
    return out


def concat(input, axis=0, name=None):
    """Tensors, or the elements of one array, end to end along an axis, which may be a Variable."""
    helper = LayerHelper('concat', name=name, input=input)
    parts = helper.multiple_input()
    out = helper.create_variable_for_type_inference(helper.input_dtype())
    if is_array(parts):
        return join_array(helper, parts[0], out, axis, use_stack=False)
    if isinstance(axis, Variable):
        axis.stop_gradient = True
        helper.append_op('concat', {'X': parts, 'AxisTensor': axis}, {'Out': out})
    else:
        helper.append_op('concat', {'X': parts}, {'Out': out}, {'axis': axis})
    return out


def is_array(parts):
    """Whether what is to be joined is one array of tensors, not a list of them."""
    arrays = [part for part in parts if part.type == VarType.LOD_TENSOR_ARRAY]
    if arrays and len(parts) > 1:
        raise ValueError('%s is an array: it is joined alone, not with %d others' % (arrays[0].name, len(parts) - 1))
    return bool(arrays)


def join_array(helper, array, out, axis, use_stack):
    index = helper.create_variable_for_type_inference('int32')
    attrs = {'axis': axis, 'use_stack': use_stack}
    helper.append_op('tensor_array_to_tensor', {'X': array}, {'Out': out, 'OutIndex': index}, attrs)
    return out


def sums(input, out=None):
    """The sum of a list of tensors."""
    helper = LayerHelper('sum', input=input)
    inputs = helper.multiple_input()
    if out is None:
        out = helper.create_variable_for_type_inference(inputs[0].dtype)
    helper.append_op('sum', {'X': inputs}, {'Out': out}, {'use_mkldnn': False})
    return out


def sum(x):
    return sums(x)


def assign(input, output=None):
    """A copy of a variable, or a constant from a numpy array."""
    helper = LayerHelper('assign')
    if isinstance(input, Variable):
        if output is None:
            output = helper.create_variable_for_type_inference(input.dtype)
        helper.append_op('assign', {'X': input}, {'Out': output})
        return output
    if not isinstance(input, numpy.ndarray):
        raise TypeError('assign: input must be a Variable or a numpy array, not %s' % describe(input))
    if input.size > VALUES_MAX:
        raise ValueError('assign: the array has %d elements; a program keeps at most %d' % (input.size, VALUES_MAX))
    slots = {'bool': 'bool_values', 'float32': 'fp32_values', 'int32': 'int32_values', 'int64': 'int64_values'}
    dtype = to_dtype(input.dtype)
    slot = slots.get(dtype_name(dtype))
    if slot is None:
        raise TypeError('assign takes arrays of %s, not %s' % (', '.join(slots), input.dtype))
    if output is None:
        output = helper.create_variable_for_type_inference(dtype)
    helper.append_op('assign_value', None, {'Out': output}, {
        'dtype': int(dtype),
        'shape': list(input.shape),
        slot: input.ravel().tolist()
    })
    return output


def range(start, end, step, dtype):
    """start, start + step, ... before end, which may be Variables of one element."""
    helper = LayerHelper('range')
    dtype = to_dtype(dtype)
    bounds = [one if isinstance(one, Variable) else fill_constant([1], dtype, one) for one in (start, end, step)]
    out = helper.create_variable_for_type_inference(dtype)
    helper.append_op('range', dict(zip(('Start', 'End', 'Step'), bounds)), {'Out': out})
    out.stop_gradient = True
    return out


def _arg(op_type, x, axis):
    helper = LayerHelper(op_type)
    out = helper.create_variable_for_type_inference('int64')
    helper.append_op(op_type, {'X': x}, {'Out': out}, {'axis': axis})
    out.stop_gradient = True
    return out


def argmax(x, axis=0):
    """Where the largest elements along `axis` are."""
    return _arg('arg_max', x, axis)


def argmin(x, axis=0):
    """Where the smallest elements along `axis` are."""
    return _arg('arg_min', x, axis)


def argsort(input, axis=-1, descending=False, name=None):
    """The elements along `axis` in order, and where each came from."""
    helper = LayerHelper('argsort', name=name).takes(input=input)
    out = helper.create_variable_for_type_inference(input.dtype, stop_gradient=True)
    indices = helper.create_variable_for_type_inference('int64', stop_gradient=True)
    helper.append_op('argsort', {'X': input}, {'Out': out, 'Indices': indices}, {
        'axis': axis,
        'descending': descending
    })
    return out, indices


def _test(op_type, x):
    helper = LayerHelper(op_type)
    out = helper.create_variable_for_type_inference('bool')
    helper.append_op(op_type, {'X': x}, {'Out': out})
    return out


def isfinite(x):
    """Whether all elements are finite."""
    return _test('isfinite', x)


def has_inf(x):
    """Whether some element is infinite."""
    return _test('isinf', x)


def has_nan(x):
    """Whether some element is NaN."""
    return _test('isnan', x)
