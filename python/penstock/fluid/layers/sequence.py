"""Layers over rows that fall into sequences."""

from penstock.fluid.framework import Variable
from penstock.fluid.layer_helper import LayerHelper, describe, require_rank, require_variables
from penstock.fluid.layers.conv import _pair
from penstock.fluid.layers.nn import squeeze, topk

__all__ = [
    'crf_decoding', 'ctc_greedy_decoder', 'edit_distance', 'im2sequence', 'lod_append', 'lod_reset', 'row_conv',
    'sequence_concat', 'sequence_conv', 'sequence_enumerate', 'sequence_expand', 'sequence_expand_as',
    'sequence_first_step', 'sequence_last_step', 'sequence_mask', 'sequence_pad', 'sequence_pool', 'sequence_reshape',
    'sequence_reverse', 'sequence_scatter', 'sequence_slice', 'sequence_softmax', 'sequence_unpad',
]


def _one_op(op_type, inputs, attrs=None, out='Out', layer=None, name=None, stop_gradient=False):
    """The layer that is one op with one output, and has the op's name unless `layer` says another."""
    helper = LayerHelper(layer or op_type, name=name)
    helper.require_slots(inputs)
    slot, first = next(iter(inputs.items()))
    if isinstance(first, (list, tuple)) and first:
        first = first[0]
    helper.takes(**{slot: first})
    var = helper.create_variable_for_type_inference(first.dtype, stop_gradient=stop_gradient)
    helper.append_op(op_type, inputs, {out: var}, attrs)
    return var


def sequence_pool(input, pool_type, is_test=False, pad_value=0.0):
    """One row for each sequence: its 'sum', 'average', 'sqrt', 'max', 'first' or 'last'."""
    helper = LayerHelper('sequence_pool').takes(input=input)
    if not isinstance(pool_type, str):
        raise TypeError('sequence_pool: pool_type must be a str, not %s' % describe(pool_type))
    out = helper.create_variable_for_type_inference(input.dtype)
    max_index = helper.create_variable_for_type_inference(input.dtype)
    helper.append_op('sequence_pool', {'X': input}, {'Out': out, 'MaxIndex': max_index}, {
        'pooltype': pool_type.upper(),
        'is_test': is_test,
        'pad_value': pad_value
    })
    if pool_type == 'max':
        max_index.stop_gradient = True
    return out


def sequence_first_step(input):
    return sequence_pool(input, 'first')


def sequence_last_step(input):
    return sequence_pool(input, 'last')


def sequence_softmax(input, use_cudnn=False, name=None):
    return _one_op('sequence_softmax', {'X': input}, {'use_cudnn': use_cudnn}, name=name)


def sequence_conv(input, num_filters, filter_size=3, filter_stride=1, padding=True, padding_start=None, bias_attr=None,
                  param_attr=None, act=None, name=None):
    """A convolution along each sequence; a window begins `padding_start` rows from its own (None: it is centred)."""
    helper = LayerHelper('sequence_conv', param_attr=param_attr, bias_attr=bias_attr, act=act, name=name)
    helper.takes(input=input)
    require_rank('sequence_conv', 'input', input, 2)
    weight = helper.create_parameter(helper.param_attr, [filter_size * input.shape[1], num_filters], input.dtype)
    out = helper.create_variable_for_type_inference(input.dtype)
    helper.append_op(
        'sequence_conv', {'X': input, 'Filter': weight}, {'Out': out}, {
            'contextStride': filter_stride,
            'contextStart': -(filter_size // 2) if padding_start is None else padding_start,
            'contextLength': filter_size
        })
    return helper.append_activation(helper.append_bias_op(out))


def row_conv(input, future_context_size, param_attr=None, act=None):
    """Each row with the `future_context_size` rows after it, weighted element by element."""
    helper = LayerHelper('row_conv', param_attr=param_attr, act=act).takes(input=input)
    weight = helper.create_parameter(helper.param_attr, [future_context_size + 1, input.shape[-1]], input.dtype)
    out = helper.create_variable_for_type_inference(input.dtype)
    helper.append_op('row_conv', {'X': input, 'Filter': weight}, {'Out': out})
    return helper.append_activation(out)


def sequence_concat(input, name=None):
    return _one_op('sequence_concat', {'X': input}, name=name)


def sequence_expand(x, y, ref_level=-1, name=None):
    return _one_op('sequence_expand', {'X': x, 'Y': y}, {'ref_level': ref_level}, name=name)


def sequence_expand_as(x, y, name=None):
    return _one_op('sequence_expand_as', {'X': x, 'Y': y}, name=name)


def sequence_slice(input, offset, length, name=None):
    require_variables('sequence_slice', offset=offset, length=length)
    offset.stop_gradient = True
    length.stop_gradient = True
    return _one_op('sequence_slice', {'X': input, 'Offset': offset, 'Length': length}, name=name)


def sequence_pad(x, pad_value, maxlen=None, name=None):
    """(the sequences as rows of one length, filled up with `pad_value`; how long each one is)"""
    helper = LayerHelper('sequence_pad', name=name).takes(x=x, pad_value=pad_value)
    out = helper.create_variable_for_type_inference(x.dtype)
    length = helper.create_variable_for_type_inference('int64', stop_gradient=True)
    pad_value.stop_gradient = True
    helper.append_op('sequence_pad', {'X': x, 'PadValue': pad_value}, {'Out': out, 'Length': length},
                     {'padded_length': -1 if maxlen is None else maxlen})
    return out, length


def sequence_unpad(x, length, name=None):
    require_variables('sequence_unpad', length=length)
    length.stop_gradient = True
    return _one_op('sequence_unpad', {'X': x, 'Length': length}, name=name)


def sequence_reshape(input, new_dim):
    return _one_op('sequence_reshape', {'X': input}, {'new_dim': new_dim})


def sequence_scatter(input, index, updates, name=None):
    return _one_op('sequence_scatter', {'X': input, 'Ids': index, 'Updates': updates}, name=name)


def sequence_enumerate(input, win_size, pad_value=0, name=None):
    return _one_op('sequence_enumerate', {'X': input}, {
        'win_size': win_size,
        'pad_value': pad_value
    }, name=name, stop_gradient=True)


def sequence_mask(x, maxlen=None, dtype='int64', name=None):
    """Ones up to the lengths in `x`, zeros from there to `maxlen` (None: the largest of them)."""
    helper = LayerHelper('sequence_mask', name=name)
    out = helper.create_variable_for_type_inference(dtype)
    inputs, attrs = {'X': x}, {'out_dtype': int(out.dtype)}
    if isinstance(maxlen, Variable):
        inputs['MaxLenTensor'] = maxlen
    else:
        attrs['maxlen'] = -1 if maxlen is None else maxlen
    helper.append_op('sequence_mask', inputs, {'Y': out}, attrs)
    out.stop_gradient = True
    return out


def sequence_reverse(x, name=None):
    return _one_op('sequence_reverse', {'X': x}, out='Y', name=name)


def lod_reset(x, y=None, target_lod=None):
    """The rows of x in the sequences of y, or in those that the offsets in y or target_lod make."""
    if y is not None:
        return _one_op('lod_reset', {'X': x, 'Y': y})
    if target_lod is None:
        raise ValueError('lod_reset: give y or target_lod')
    return _one_op('lod_reset', {'X': x}, {'target_lod': list(target_lod)})


def lod_append(x, level):
    """x with one more level of sequences, below its own: offsets, or a variable that holds them or has them."""
    if isinstance(level, Variable):
        return _one_op('lod_reset', {'X': x, 'Y': level}, {'append': True}, layer='lod_append')
    if not isinstance(level, (list, tuple)):
        raise ValueError('lod_append: level must be a list, a tuple or a variable, not %r' % (level,))
    return _one_op('lod_reset', {'X': x}, {'append': True, 'target_lod': list(level)}, layer='lod_append')


def im2sequence(input, filter_size=1, stride=1, padding=0, input_image_size=None, out_stride=1, name=None):
    """The windows of each image, line by line, as a sequence."""
    padding = [padding] * 2 if isinstance(padding, int) else list(padding)
    if len(padding) == 2:
        padding = padding * 2
    inputs = {'X': input}
    attrs = {'kernels': _pair(filter_size, 'filter_size'), 'strides': _pair(stride, 'stride'), 'paddings': padding}
    if input_image_size:
        inputs['Y'] = input_image_size
        attrs['out_stride'] = _pair(out_stride, 'out_stride')
    return _one_op('im2sequence', inputs, attrs, name=name)


def edit_distance(input, label, normalized=True, ignored_tokens=None, input_length=None, label_length=None):
    """(how far each sequence is from its label, their number); without the ignored tokens, if there are some."""
    helper = LayerHelper('edit_distance')
    if ignored_tokens:
        erased = []
        for tokens in (input, label):
            erased.append(helper.create_variable_for_type_inference('int64'))
            helper.append_op('sequence_erase', {'X': tokens}, {'Out': erased[-1]}, {'tokens': list(ignored_tokens)})
        input, label = erased
    inputs = {'Hyps': input, 'Refs': label}
    if input_length is not None and label_length is not None:
        inputs.update(HypsLength=input_length, RefsLength=label_length)
    out = helper.create_variable_for_type_inference('int64')
    count = helper.create_variable_for_type_inference('int64')
    helper.append_op('edit_distance', inputs, {'Out': out, 'SequenceNum': count}, {'normalized': normalized})
    return out, count


def ctc_greedy_decoder(input, blank, input_length=None, padding_value=0, name=None):
    """What the most likely label of each row says: without repetitions and blanks."""
    helper = LayerHelper('ctc_greedy_decoder', name=name)
    _, labels = topk(input, k=1)
    out = helper.create_variable_for_type_inference('int64')
    attrs = {'merge_repeated': True, 'blank': blank}
    if input_length is None:
        helper.append_op('ctc_align', {'Input': labels}, {'Output': out}, attrs)
        return out
    length = helper.create_variable_for_type_inference('int64')
    labels = squeeze(labels, [2])
    helper.append_op('ctc_align', {'Input': labels, 'InputLength': input_length},
                     {'Output': out, 'OutputLength': length}, dict(attrs, padding_value=padding_value))
    return out, length


def crf_decoding(input, param_attr, label=None, length=None):
    """The most likely path, by the transition weights that stand in the parameter of this name; or, with labels,
    whether it agrees with them."""
    helper = LayerHelper('crf_decoding', param_attr=param_attr)
    inputs = {'Emission': input, 'Transition': helper.get_parameter(helper.param_attr.name)}
    if label is not None:
        inputs['Label'] = label
    if length is not None:
        inputs['Length'] = length
    path = helper.create_variable_for_type_inference('int64')
    helper.append_op('crf_decoding', inputs, {'ViterbiPath': path})
    return path
