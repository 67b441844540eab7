"""Losses, one value an example."""

from penstock.fluid.layer_helper import LayerHelper

__all__ = ['cross_entropy', 'softmax_with_cross_entropy', 'square_error_cost']


def cross_entropy(input, label, soft_label=False, ignore_index=-100):
    """-log of the probability of the label (of the expected one, for soft labels)."""
    if not soft_label:
        return _cross_entropy2(input, label, ignore_index)
    helper = LayerHelper('cross_entropy')
    out = helper.create_variable_for_type_inference(input.dtype)
    helper.append_op('cross_entropy', {'X': input, 'Label': label}, {'Y': out}, {
        'soft_label': soft_label,
        'ignore_index': ignore_index
    })
    return out


def _cross_entropy2(input, label, ignore_index):
    helper = LayerHelper('cross_entropy2')
    out = helper.create_variable_for_type_inference(input.dtype)
    xshape = helper.create_variable_for_type_inference(input.dtype)
    match_x = helper.create_variable_for_type_inference(input.dtype)
    helper.append_op('cross_entropy2', {'X': input, 'Label': label}, {'Y': out, 'MatchX': match_x, 'XShape': xshape},
                     {'ignore_index': ignore_index})
    return out


def softmax_with_cross_entropy(logits, label, soft_label=False, ignore_index=-100, numeric_stable_mode=True,
                               return_softmax=False, axis=-1):
    """softmax, then cross_entropy, in one op."""
    helper = LayerHelper('softmax_with_cross_entropy')
    softmax = helper.create_variable_for_type_inference(logits.dtype)
    loss = helper.create_variable_for_type_inference(logits.dtype)
    attrs = {
        'soft_label': soft_label,
        'ignore_index': ignore_index,
        'numeric_stable_mode': numeric_stable_mode,
        'axis': axis
    }
    outputs = {'Softmax': softmax, 'Loss': loss}
    helper.append_op('softmax_with_cross_entropy', {'Logits': logits, 'Label': label}, outputs, attrs)
    return (loss, softmax) if return_softmax else loss


def square_error_cost(input, label):
    """(input - label) squared."""
    helper = LayerHelper('square_error_cost')
    difference = helper.create_variable_for_type_inference(input.dtype)
    helper.append_op('elementwise_sub', {'X': input, 'Y': label}, {'Out': difference})
    out = helper.create_variable_for_type_inference(input.dtype)
    helper.append_op('square', {'X': difference}, {'Out': out})
    return out
