"""Layers with parameters, and what usually stands between them."""

import math

from penstock.fluid.core import VarType
from penstock.fluid.framework import Variable
from penstock.fluid.initializer import Constant
from penstock.fluid.layer_helper import LayerHelper, require_variables
from penstock.fluid.layers.tensor import int_list

__all__ = [
    'autoincreased_step_counter', 'cos_sim', 'dropout', 'embedding', 'fc', 'flatten',
    'get_tensor_from_selected_rows', 'matmul', 'merge_selected_rows', 'mul', 'reshape', 'softmax', 'split', 'squeeze',
    'topk', 'transpose', 'unsqueeze',
]


def fc(input, size, num_flatten_dims=1, param_attr=None, bias_attr=None, act=None, name=None):
    """act(sum of flatten(input_i) . W_i + b)"""
    helper = LayerHelper('fc', input=input, param_attr=param_attr, bias_attr=bias_attr, act=act, name=name)
    dtype = helper.input_dtype()
    products = []
    for one, attr in helper.iter_inputs_and_params():
        shape = one.shape
        if num_flatten_dims == -1:
            num_flatten_dims = len(shape) - 1
        weight = helper.create_parameter(attr, [math.prod(shape[num_flatten_dims:]), size], dtype)
        product = helper.create_variable_for_type_inference(dtype)
        helper.append_op('mul', {'X': one, 'Y': weight}, {'Out': product}, {
            'x_num_col_dims': num_flatten_dims,
            'y_num_col_dims': 1
        })
        products.append(product)
    if len(products) == 1:
        before_bias = products[0]
    else:
        before_bias = helper.create_variable_for_type_inference(dtype)
        helper.append_op('sum', {'X': products}, {'Out': before_bias}, {'use_mkldnn': False})
    return helper.append_activation(helper.append_bias_op(before_bias, dim_start=num_flatten_dims))


def embedding(input, size, is_sparse=False, is_distributed=False, padding_idx=None, param_attr=None, dtype='float32'):
    """As fluid.embedding, for ids whose last extent is 1: it goes, and the width takes its place."""
    return lookup_layer('lookup_table', input, size, is_sparse, is_distributed, padding_idx, param_attr, dtype)


def lookup_layer(op_type, input, size, is_sparse, is_distributed, padding_idx, param_attr, dtype):
    """Both layers called embedding: they differ in their op."""
    require_variables('embedding', input=input)
    if input.dtype != VarType.INT64:
        raise TypeError('embedding: the ids must be int64, but %s is %s' % (input.name, input.dtype.name))
    helper = LayerHelper('embedding', param_attr=param_attr)
    table = helper.create_parameter(helper.param_attr, size, dtype)
    out = helper.create_variable_for_type_inference(dtype)
    if padding_idx is None:
        padding_idx = -1
    elif padding_idx < 0:
        padding_idx += size[0]
    helper.append_op(
        op_type, {'Ids': input, 'W': table}, {'Out': out}, {
            'is_sparse': is_sparse,
            'is_distributed': is_distributed,
            'remote_prefetch': bool(is_sparse) and not is_distributed,
            'padding_idx': padding_idx
        })
    return out


def autoincreased_step_counter(counter_name=None, begin=1, step=1):
    """A variable that goes on by `step` before each run's first op, and is `begin` in the first run."""
    helper = LayerHelper('global_step_counter')
    counter, is_new = helper.create_or_get_global_variable(name=counter_name or '@STEP_COUNTER@', dtype='int64',
                                                           shape=[1], persistable=True)
    if is_new:
        helper.set_variable_initializer(counter, Constant(begin - 1, force_cpu=True))
        helper.main_program.global_block()._prepend_op('increment', {'X': counter}, {'Out': counter},
                                                       {'step': float(step)})
        counter.stop_gradient = True
    return counter


def dropout(x, dropout_prob, is_test=False, seed=None, name=None, dropout_implementation='downgrade_in_infer'):
    helper = LayerHelper('dropout', name=name).takes(x=x)
    out = helper.create_variable_for_type_inference(x.dtype)
    mask = helper.create_variable_for_type_inference(VarType.UINT8, stop_gradient=True)
    if not seed and helper.main_program.random_seed != 0:
        seed = helper.main_program.random_seed
    helper.append_op(
        'dropout', {'X': x}, {'Out': out, 'Mask': mask}, {
            'dropout_prob': dropout_prob,
            'is_test': is_test,
            'fix_seed': seed is not None,
            'seed': seed if seed is not None else 0,
            'dropout_implementation': dropout_implementation
        })
    return out


def softmax(input, use_cudnn=False, name=None, axis=-1):
    helper = LayerHelper('softmax', name=name).takes(input=input)
    out = helper.create_variable_for_type_inference(input.dtype)
    helper.append_op('softmax', {'X': input}, {'Out': out}, {'axis': axis, 'use_cudnn': use_cudnn})
    return out


def mul(x, y, x_num_col_dims=1, y_num_col_dims=1, name=None):
    helper = LayerHelper('mul', name=name).takes(x=x)
    out = helper.create_variable_for_type_inference(x.dtype)
    helper.append_op('mul', {'X': x, 'Y': y}, {'Out': out}, {
        'x_num_col_dims': x_num_col_dims,
        'y_num_col_dims': y_num_col_dims
    })
    return out


def matmul(x, y, transpose_x=False, transpose_y=False, alpha=1.0, name=None):
    helper = LayerHelper('matmul', name=name).takes(x=x)
    out = helper.create_variable_for_type_inference(x.dtype)
    helper.append_op('matmul', {'X': x, 'Y': y}, {'Out': out}, {
        'transpose_X': transpose_x,
        'transpose_Y': transpose_y,
        'alpha': float(alpha)
    })
    return out


def cos_sim(X, Y):
    """The cosine between rows of X and Y; Y may have one row for all of X's."""
    helper = LayerHelper('cos_sim').takes(X=X)
    out, x_norm, y_norm = (helper.create_variable_for_type_inference(X.dtype) for _ in range(3))
    helper.append_op('cos_sim', {'X': X, 'Y': Y}, {'Out': out, 'XNorm': x_norm, 'YNorm': y_norm})
    return out


def transpose(x, perm, name=None):
    require_variables('transpose', x=x)
    if sorted(perm) != list(range(len(x.shape))):
        raise ValueError('perm must be a permutation of the %d axes of x, not %s' % (len(x.shape), list(perm)))
    helper = LayerHelper('transpose', name=name)
    out = helper.create_variable_for_type_inference(x.dtype)
    xshape = helper.create_variable_for_type_inference(x.dtype)
    helper.append_op('transpose2', {'X': x}, {'Out': out, 'XShape': xshape}, {'axis': list(perm)})
    return out


def reshape(x, shape, actual_shape=None, act=None, inplace=False, name=None):
    """-1 stands for the extent that is left over, 0 for the input's own extent there."""
    helper = LayerHelper('reshape2', act=act, name=name).takes(x=x)
    inputs = {'X': x}
    if isinstance(shape, Variable):
        actual_shape, shape = shape, []
    shape, variables = int_list(helper, shape)
    if variables:
        inputs['ShapeTensor'] = variables
    elif actual_shape is not None:
        require_variables('reshape', actual_shape=actual_shape)
        actual_shape.stop_gradient = True
        inputs['Shape'] = actual_shape
    out = x if inplace else helper.create_variable_for_type_inference(x.dtype)
    xshape = helper.create_variable_for_type_inference(x.dtype)
    helper.append_op('reshape2', inputs, {'Out': out, 'XShape': xshape}, {'shape': shape})
    return helper.append_activation(out)


def flatten(x, axis=1, name=None):
    """A matrix: the extents before `axis` are its rows, the others its columns."""
    require_variables('flatten', x=x)
    if not 0 <= axis <= len(x.shape):
        raise ValueError('axis must be in [0, %d], not %r' % (len(x.shape), axis))
    helper = LayerHelper('flatten', name=name)
    out = helper.create_variable_for_type_inference(x.dtype)
    xshape = helper.create_variable_for_type_inference(x.dtype)
    helper.append_op('flatten2', {'X': x}, {'Out': out, 'XShape': xshape}, {'axis': axis})
    return out


def squeeze(input, axes, name=None):
    """Without the extents in `axes` that are 1; without any axes, without every extent that is 1."""
    return _with_axes('squeeze2', LayerHelper('squeeze', name=name).takes(input=input), input, axes)


def unsqueeze(input, axes, name=None):
    """With an extent of 1 at each place in `axes`, put in one after the other. Axes may be Variables."""
    helper = LayerHelper('unsqueeze2', name=name).takes(input=input)
    if isinstance(axes, Variable):
        axes.stop_gradient = True
        return _with_axes('unsqueeze2', helper, input, [], AxesTensor=axes)
    axes, variables = int_list(helper, [axes] if isinstance(axes, int) else axes)
    if variables:
        return _with_axes('unsqueeze2', helper, input, [], AxesTensorList=variables)
    return _with_axes('unsqueeze2', helper, input, axes)


def _with_axes(op_type, helper, input, axes, **tensors):
    out = helper.create_variable_for_type_inference(input.dtype)
    xshape = helper.create_variable_for_type_inference(input.dtype)
    helper.append_op(op_type, dict(tensors, X=input), {'Out': out, 'XShape': xshape}, {'axes': list(axes)})
    return out


def split(input, num_or_sections, dim=-1, name=None):
    """A list of parts: so many equal ones, or parts of the given extents (one may be -1: what is left). Extents and the
    dimension may be Variables."""
    helper = LayerHelper('split', name=name).takes(input=input)
    inputs, attrs = {'X': input}, {}
    if isinstance(dim, Variable):
        dim.stop_gradient = True
        inputs['AxisTensor'] = dim
    else:
        attrs['axis'] = dim + len(input.shape) if dim < 0 else dim
    if isinstance(num_or_sections, int):
        count = attrs['num'] = num_or_sections
    else:
        count = len(num_or_sections)
        attrs['sections'], variables = int_list(helper, num_or_sections)
        if variables:
            inputs['SectionsTensorList'] = variables
    outs = [helper.create_variable_for_type_inference(input.dtype) for _ in range(count)]
    helper.append_op('split', inputs, {'Out': outs}, attrs)
    return outs


def merge_selected_rows(x, name=None):
    """Selected rows with each row once."""
    helper = LayerHelper('merge_selected_rows', name=name).takes(x=x)
    out = helper.create_variable_for_type_inference(x.dtype)
    helper.append_op('merge_selected_rows', {'X': x}, {'Out': out})
    return out


def get_tensor_from_selected_rows(x, name=None):
    """The values of selected rows as a tensor."""
    require_variables('get_tensor_from_selected_rows', x=x)
    if x.type != VarType.SELECTED_ROWS:
        raise TypeError('get_tensor_from_selected_rows: %s is no SELECTED_ROWS, but %s' % (x.name, x.type.name))
    helper = LayerHelper('get_tensor_from_selected_rows', name=name)
    out = helper.create_variable_for_type_inference(x.dtype)
    helper.append_op('get_tensor_from_selected_rows', {'X': x}, {'Out': out})
    return out


def topk(input, k, name=None):
    """The k largest of each row, and where they stood."""
    helper = LayerHelper('top_k', name=name).takes(input=input)
    values = helper.create_variable_for_type_inference(input.dtype)
    indices = helper.create_variable_for_type_inference('int64')
    inputs, attrs = {'X': input}, {}
    if isinstance(k, Variable):
        inputs['K'] = k
    else:
        attrs['k'] = k
    helper.append_op('top_k', inputs, {'Out': values, 'Indices': indices}, attrs)
    values.stop_gradient = True
    indices.stop_gradient = True
    return values, indices
