"""Normalisation: over the batch, over a row, along an axis, over neighbouring channels."""

import math

from penstock.fluid.core import VarType
from penstock.fluid.framework import Variable
from penstock.fluid.initializer import Constant
from penstock.fluid.layer_helper import LayerHelper, require_rank, require_variables
from penstock.fluid.param_attr import ParamAttr

__all__ = ['batch_norm', 'l2_normalize', 'layer_norm', 'lrn']


def batch_norm(input, act=None, is_test=False, momentum=0.9, epsilon=1e-05, param_attr=None, bias_attr=None,
               data_layout='NCHW', in_place=False, name=None, moving_mean_name=None, moving_variance_name=None,
               do_model_average_for_mean_and_var=True, use_global_stats=False):
    """Normalises each channel over the batch; the running mean and variance are parameters that are not trained."""
    helper = LayerHelper('batch_norm', param_attr=param_attr, bias_attr=bias_attr, act=act, name=name)
    helper.takes(input=input)
    require_rank('batch_norm', 'input', input, 2)
    dtype = VarType.FP32 if input.dtype == VarType.FP16 else input.dtype
    channels = input.shape[1] if data_layout == 'NCHW' else input.shape[-1]

    def running(parameter_name, value):
        attr = ParamAttr(name=parameter_name, initializer=Constant(value), trainable=False,
                         do_model_average=do_model_average_for_mean_and_var)
        parameter = helper.create_parameter(attr, [channels], dtype)
        parameter.stop_gradient = True
        return parameter

    weight = helper.create_parameter(helper.param_attr, [channels], dtype, default_initializer=Constant(1.0))
    bias = helper.create_parameter(helper.bias_attr, [channels], dtype, is_bias=True)
    mean = running(moving_mean_name, 0.0)
    variance = running(moving_variance_name, 1.0)
    saved_mean = helper.create_variable_for_type_inference(dtype, stop_gradient=True)
    saved_variance = helper.create_variable_for_type_inference(dtype, stop_gradient=True)
    out = input if in_place else helper.create_variable_for_type_inference(dtype)
    inputs = {'X': input, 'Scale': weight, 'Bias': bias, 'Mean': mean, 'Variance': variance}
    attrs = {
        'epsilon': epsilon,
        'is_test': is_test,
        'data_layout': data_layout,
        'use_mkldnn': False,
        'fuse_with_relu': False,
        'use_global_stats': use_global_stats
    }
    if isinstance(momentum, Variable):
        inputs['MomentumTensor'] = momentum
    else:
        attrs['momentum'] = momentum
    outputs = {
        'Y': out,
        'MeanOut': mean,
        'VarianceOut': variance,
        'SavedMean': saved_mean,
        'SavedVariance': saved_variance
    }
    helper.append_op('batch_norm', inputs, outputs, attrs)
    return helper.append_activation(out)


def layer_norm(input, scale=True, shift=True, begin_norm_axis=1, epsilon=1e-05, param_attr=None, bias_attr=None,
               act=None, name=None):
    """Normalises what stands behind begin_norm_axis, then stretches and shifts it, element by element, if asked."""
    helper = LayerHelper('layer_norm', param_attr=param_attr, bias_attr=bias_attr, act=act, name=name)
    helper.takes(input=input)
    dtype = input.dtype
    width = [math.prod(input.shape[begin_norm_axis:])]
    inputs = {'X': input}
    if scale:
        inputs['Scale'] = helper.create_parameter(helper.param_attr, width, dtype, default_initializer=Constant(1.0))
    if shift:
        inputs['Bias'] = helper.create_parameter(helper.bias_attr, width, dtype, is_bias=True)
    mean = helper.create_variable_for_type_inference(dtype, stop_gradient=True)
    variance = helper.create_variable_for_type_inference(dtype, stop_gradient=True)
    out = helper.create_variable_for_type_inference(dtype)
    helper.append_op('layer_norm', inputs, {'Y': out, 'Mean': mean, 'Variance': variance}, {
        'epsilon': epsilon,
        'begin_norm_axis': begin_norm_axis
    })
    return helper.append_activation(out)


def l2_normalize(x, axis, epsilon=1e-12, name=None):
    """The vectors along `axis`, each made one long."""
    require_variables('l2_normalize', x=x)
    if len(x.shape) == 1:
        axis = 0
    helper = LayerHelper('l2_normalize', name=name)
    out = helper.create_variable_for_type_inference(x.dtype)
    norm = helper.create_variable_for_type_inference(x.dtype)
    helper.append_op('norm', {'X': x}, {'Out': out, 'Norm': norm}, {
        'axis': 1 if axis is None else axis,
        'epsilon': epsilon
    })
    return out


def lrn(input, n=5, k=1.0, alpha=0.0001, beta=0.75, name=None, data_format='NCHW'):
    """Each element against its neighbours in n channels."""
    require_variables('lrn', input=input)
    if len(input.shape) != 4:
        raise ValueError('lrn takes images of 4 axes; the shape of its input is %s' % (input.shape,))
    if data_format not in ('NCHW', 'NHWC'):
        raise ValueError('data_format must be NCHW or NHWC, not %r' % (data_format,))
    helper = LayerHelper('lrn', name=name)
    middle = helper.create_variable_for_type_inference(input.dtype, stop_gradient=True)
    out = helper.create_variable_for_type_inference(input.dtype)
    helper.append_op('lrn', {'X': input}, {'Out': out, 'MidOut': middle}, {
        'n': n,
        'k': k,
        'alpha': alpha,
        'beta': beta,
        'data_format': data_format
    })
    return out
