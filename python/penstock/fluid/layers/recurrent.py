"""Recurrent layers over sequences, and their single steps."""

from penstock.fluid.layer_helper import LayerHelper
from penstock.fluid.layers.nn import fc
from penstock.fluid.layers.tensor import concat
from penstock.fluid.param_attr import ParamAttr

__all__ = ['beam_search', 'dynamic_gru', 'dynamic_lstm', 'dynamic_lstmp', 'gru_unit', 'lstm_unit']

ACTIVATION_NUMBERS = {'identity': 0, 'sigmoid': 1, 'tanh': 2, 'relu': 3}


def _lstm_inputs(helper, input, width, rows, use_peepholes, dtype, h_0, c_0):
    """The slots that lstm and lstmp share; both draw their first weight, and then what stands between it and the
    bias."""
    inputs = {'Input': input, 'Weight': helper.create_parameter(helper.param_attr, [rows, 4 * width], dtype)}
    if h_0 is not None:
        inputs['H0'] = h_0
    if c_0 is not None:
        inputs['C0'] = c_0
    bias = [1, (7 if use_peepholes else 4) * width]
    return inputs, lambda: helper.create_parameter(helper.bias_attr, bias, dtype, is_bias=True)


def dynamic_lstm(input, size, h_0=None, c_0=None, param_attr=None, bias_attr=None, use_peepholes=True,
                 is_reverse=False, gate_activation='sigmoid', cell_activation='tanh', candidate_activation='tanh',
                 dtype='float32', name=None):
    """(what an LSTM puts out, its cells) over each sequence of `input`, whose width `size` is four times the cell's."""
    if bias_attr is False:
        raise ValueError('dynamic_lstm: bias_attr must not be False')
    helper = LayerHelper('lstm', param_attr=param_attr, bias_attr=bias_attr, name=name)
    width = size // 4
    inputs, make_bias = _lstm_inputs(helper, input, width, width, use_peepholes, dtype, h_0, c_0)
    inputs['Bias'] = make_bias()
    slots = ('Hidden', 'Cell', 'BatchGate', 'BatchCellPreAct')
    outputs = {slot: helper.create_variable_for_type_inference(dtype) for slot in slots}
    helper.append_op(
        'lstm', inputs, outputs, {
            'use_peepholes': use_peepholes,
            'is_reverse': is_reverse,
            'gate_activation': gate_activation,
            'cell_activation': cell_activation,
            'candidate_activation': candidate_activation
        })
    return outputs['Hidden'], outputs['Cell']


def dynamic_lstmp(input, size, proj_size, param_attr=None, bias_attr=None, use_peepholes=True, is_reverse=False,
                  gate_activation='sigmoid', cell_activation='tanh', candidate_activation='tanh',
                  proj_activation='tanh', dtype='float32', name=None, h_0=None, c_0=None, cell_clip=None,
                  proj_clip=None):
    """As dynamic_lstm, but what it puts out is projected to `proj_size` elements, which the next step sees too."""
    if bias_attr is False:
        raise ValueError('dynamic_lstmp: bias_attr must not be False')
    helper = LayerHelper('lstmp', param_attr=param_attr, bias_attr=bias_attr, name=name)
    width = size // 4
    inputs, make_bias = _lstm_inputs(helper, input, width, proj_size, use_peepholes, dtype, h_0, c_0)
    inputs['ProjWeight'] = helper.create_parameter(helper.param_attr, [width, proj_size], dtype)
    inputs['Bias'] = make_bias()
    outputs = {slot: helper.create_variable_for_type_inference(dtype) for slot in ('Projection', 'Cell')}
    helper.create_variable_for_type_inference(dtype)    # of an older form of the op: a name, no argument
    for slot in ('BatchHidden', 'BatchGate', 'BatchCellPreAct'):
        outputs[slot] = helper.create_variable_for_type_inference(dtype)
    attrs = {
        'use_peepholes': use_peepholes,
        'is_reverse': is_reverse,
        'gate_activation': gate_activation,
        'cell_activation': cell_activation,
        'candidate_activation': candidate_activation,
        'proj_activation': proj_activation
    }
    attrs.update((name, value) for name, value in (('cell_clip', cell_clip), ('proj_clip', proj_clip)) if value)
    helper.append_op('lstmp', inputs, outputs, attrs)
    return outputs['Projection'], outputs['Cell']


def dynamic_gru(input, size, param_attr=None, bias_attr=None, is_reverse=False, gate_activation='sigmoid',
                candidate_activation='tanh', h_0=None, origin_mode=False):
    """What a GRU of `size` elements puts out over each sequence of `input`, which is three times as wide."""
    helper = LayerHelper('gru', param_attr=param_attr, bias_attr=bias_attr).takes(input=input)
    dtype = input.dtype
    inputs = {'Input': input, 'Weight': helper.create_parameter(helper.param_attr, [size, 3 * size], dtype)}
    if helper.bias_attr:
        inputs['Bias'] = helper.create_parameter(helper.bias_attr, [1, 3 * size], dtype, is_bias=True)
    if h_0 is not None:
        inputs['H0'] = h_0
    slots = ('Hidden', 'BatchGate', 'BatchResetHiddenPrev', 'BatchHidden')
    outputs = {slot: helper.create_variable_for_type_inference(dtype) for slot in slots}
    helper.append_op(
        'gru', inputs, outputs, {
            'is_reverse': is_reverse,
            'gate_activation': gate_activation,
            'activation': candidate_activation,
            'origin_mode': origin_mode
        })
    return outputs['Hidden']


def gru_unit(input, hidden, size, param_attr=None, bias_attr=None, activation='tanh', gate_activation='sigmoid',
             origin_mode=False):
    """(the new hidden state, what the reset gate let pass, the gates) of one GRU step; `size` is the width of input."""
    helper = LayerHelper('gru_unit', param_attr=param_attr, bias_attr=bias_attr).takes(input=input)
    dtype = input.dtype
    width = size // 3
    for which, name in (('activation', activation), ('gate_activation', gate_activation)):
        if name not in ACTIVATION_NUMBERS:
            raise ValueError('gru_unit: %s must be one of %s, not %r' % (which, ', '.join(ACTIVATION_NUMBERS), name))
    inputs = {
        'Input': input,
        'HiddenPrev': hidden,
        'Weight': helper.create_parameter(helper.param_attr, [width, 3 * width], dtype)
    }
    gate, reset, updated = (helper.create_variable_for_type_inference(dtype) for _ in range(3))
    if helper.bias_attr:
        inputs['Bias'] = helper.create_parameter(helper.bias_attr, [1, 3 * width], dtype, is_bias=True)
    helper.append_op('gru_unit', inputs, {'Gate': gate, 'ResetHiddenPrev': reset, 'Hidden': updated}, {
        'activation': ACTIVATION_NUMBERS[activation],
        'gate_activation': ACTIVATION_NUMBERS[gate_activation],
        'origin_mode': origin_mode
    })
    return updated, reset, gate


def lstm_unit(x_t, hidden_t_prev, cell_t_prev, forget_bias=0.0, param_attr=None, bias_attr=None, name=None):
    """(what one LSTM step puts out, its cell) from its input, and both of the step before."""
    helper = LayerHelper('lstm_unit', name=name).takes(x_t=x_t, hidden_t_prev=hidden_t_prev, cell_t_prev=cell_t_prev)
    for what, var in (('x_t', x_t), ('hidden_t_prev', hidden_t_prev), ('cell_t_prev', cell_t_prev)):
        if len(var.shape) != 2:
            raise ValueError('lstm_unit: %s must have 2 axes, but its shape is %s' % (what, var.shape))
        if var.shape[0] != x_t.shape[0]:
            raise ValueError('lstm_unit: %s has %d rows, x_t %d' % (what, var.shape[0], x_t.shape[0]))
    if hidden_t_prev.shape[1] != cell_t_prev.shape[1]:
        raise ValueError('lstm_unit: hidden_t_prev and cell_t_prev must have one width, not %d and %d' %
                         (hidden_t_prev.shape[1], cell_t_prev.shape[1]))
    if bias_attr is None:
        bias_attr = ParamAttr()
    joined = concat([x_t, hidden_t_prev], axis=1)
    gates = fc(joined, 4 * cell_t_prev.shape[1], param_attr=param_attr, bias_attr=bias_attr)
    cell, hidden = (helper.create_variable_for_type_inference(x_t.dtype) for _ in range(2))
    helper.append_op('lstm_unit', {'X': gates, 'C_prev': cell_t_prev}, {'C': cell, 'H': hidden},
                     {'forget_bias': forget_bias})
    return hidden, cell


def beam_search(pre_ids, pre_scores, ids, scores, beam_size, end_id, level=0, is_accumulated=True, name=None,
                return_parent_idx=False):
    """(the tokens, their scores[, the rows they continue]) of the best continuations of each source's branches."""
    helper = LayerHelper('beam_search', name=name).takes(pre_ids=pre_ids, pre_scores=pre_scores)
    inputs = {'pre_ids': pre_ids, 'pre_scores': pre_scores, 'scores': scores}
    if ids is not None:
        inputs['ids'] = ids
    chosen_scores = helper.create_variable_for_type_inference(pre_scores.dtype)
    chosen_ids = helper.create_variable_for_type_inference(pre_ids.dtype)
    parents = helper.create_variable_for_type_inference('int32')
    outputs = {'selected_ids': chosen_ids, 'selected_scores': chosen_scores, 'parent_idx': parents}
    helper.append_op('beam_search', inputs, outputs, {
        'level': level,
        'beam_size': beam_size,
        'end_id': end_id,
        'is_accumulated': is_accumulated
    })
    return (chosen_ids, chosen_scores, parents) if return_parent_idx else (chosen_ids, chosen_scores)
