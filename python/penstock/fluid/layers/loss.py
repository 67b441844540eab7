"""Losses, one value an example."""

from penstock.fluid.framework import Variable
from penstock.fluid.layer_helper import LayerHelper

__all__ = [
    'cross_entropy', 'huber_loss', 'kldiv_loss', 'label_smooth', 'log_loss', 'margin_rank_loss', 'one_hot', 'rank_loss',
    'sigmoid_cross_entropy_with_logits', 'smooth_l1', 'softmax_with_cross_entropy', 'square_error_cost'
]


def cross_entropy(input, label, soft_label=False, ignore_index=-100):
    """-log of the probability of the label (of the expected one, for soft labels)."""
    if not soft_label:
        return _cross_entropy2(input, label, ignore_index)
    helper = LayerHelper('cross_entropy').takes(input=input)
    out = helper.create_variable_for_type_inference(input.dtype)
    helper.append_op('cross_entropy', {'X': input, 'Label': label}, {'Y': out}, {
        'soft_label': soft_label,
        'ignore_index': ignore_index
    })
    return out


def _cross_entropy2(input, label, ignore_index):
    helper = LayerHelper('cross_entropy2').takes(input=input)
    out = helper.create_variable_for_type_inference(input.dtype)
    xshape = helper.create_variable_for_type_inference(input.dtype)
    match_x = helper.create_variable_for_type_inference(input.dtype)
    helper.append_op('cross_entropy2', {'X': input, 'Label': label}, {'Y': out, 'MatchX': match_x, 'XShape': xshape},
                     {'ignore_index': ignore_index})
    return out


def softmax_with_cross_entropy(logits, label, soft_label=False, ignore_index=-100, numeric_stable_mode=True,
                               return_softmax=False, axis=-1):
    """softmax, then cross_entropy, in one op."""
    helper = LayerHelper('softmax_with_cross_entropy').takes(logits=logits)
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
    helper = LayerHelper('square_error_cost').takes(input=input)
    difference = helper.create_variable_for_type_inference(input.dtype)
    helper.append_op('elementwise_sub', {'X': input, 'Y': label}, {'Out': difference})
    out = helper.create_variable_for_type_inference(input.dtype)
    helper.append_op('square', {'X': difference}, {'Out': out})
    return out


def log_loss(input, label, epsilon=0.0001, name=None):
    """The log loss of probabilities for labels of 0 and 1."""
    helper = LayerHelper('log_loss', name=name).takes(input=input)
    out = helper.create_variable_for_type_inference(input.dtype)
    helper.append_op('log_loss', {'Predicted': input, 'Labels': label}, {'Loss': out}, {'epsilon': epsilon})
    return out


def sigmoid_cross_entropy_with_logits(x, label, ignore_index=-100, name=None, normalize=False):
    """The log loss of sigmoid(x); elements whose label is ignore_index do not count."""
    helper = LayerHelper('sigmoid_cross_entropy_with_logits', name=name).takes(x=x)
    out = helper.create_variable_for_type_inference(x.dtype)
    helper.append_op('sigmoid_cross_entropy_with_logits', {'X': x, 'Label': label}, {'Out': out}, {
        'ignore_index': ignore_index,
        'normalize': normalize
    })
    return out


def huber_loss(input, label, delta):
    """Half the square of the error up to delta, then its size."""
    helper = LayerHelper('huber_loss').takes(input=input)
    residual = helper.create_variable_for_type_inference(input.dtype)
    out = helper.create_variable_for_type_inference(input.dtype)
    helper.append_op('huber_loss', {'X': input, 'Y': label}, {'Out': out, 'Residual': residual}, {'delta': delta})
    return out


def one_hot(input, depth, allow_out_of_range=False):
    """Class numbers, whose last extent is 1, as rows of 0 and 1."""
    helper = LayerHelper('one_hot')
    out = helper.create_variable_for_type_inference('float32')
    inputs, attrs = {'X': input}, {'allow_out_of_range': allow_out_of_range}
    if isinstance(depth, Variable):
        inputs['depth_tensor'] = depth
    else:
        attrs['depth'] = depth
    helper.append_op('one_hot', inputs, {'Out': out}, attrs)
    out.stop_gradient = True
    return out


def label_smooth(label, prior_dist=None, epsilon=0.1, dtype='float32', name=None):
    """(1 - epsilon) * label + epsilon * prior; by default all classes are alike."""
    if not 0.0 < epsilon <= 1.0:
        raise ValueError('epsilon must be above 0 and at most 1, not %r' % (epsilon,))
    helper = LayerHelper('label_smooth', name=name)
    label.stop_gradient = True
    out = helper.create_variable_for_type_inference(dtype)
    inputs = {'X': label} if prior_dist is None else {'X': label, 'PriorDist': prior_dist}
    helper.append_op('label_smooth', inputs, {'Out': out}, {'epsilon': float(epsilon)})
    return out


def kldiv_loss(x, target, reduction='mean', name=None):
    """How much the distribution `target` differs from the one whose logarithms x holds."""
    helper = LayerHelper('kldiv_loss', name=name).takes(x=x)
    loss = helper.create_variable_for_type_inference(x.dtype)
    helper.append_op('kldiv_loss', {'X': x, 'Target': target}, {'Loss': loss}, {'reduction': reduction})
    return loss


def smooth_l1(x, y, inside_weight=None, outside_weight=None, sigma=None):
    """Squares of small differences, sizes of large ones, added up row by row."""
    helper = LayerHelper('smooth_l1_loss').takes(x=x)
    difference = helper.create_variable_for_type_inference(x.dtype)
    loss = helper.create_variable_for_type_inference(x.dtype)
    inputs = {'X': x, 'Y': y}
    if inside_weight is not None:
        inputs['InsideWeight'] = inside_weight
    if outside_weight is not None:
        inputs['OutsideWeight'] = outside_weight
    helper.append_op('smooth_l1_loss', inputs, {'Diff': difference, 'Out': loss},
                     {'sigma': 1.0 if sigma is None else sigma})
    return loss


def rank_loss(label, left, right, name=None):
    """The log loss of the order of two scores; a label of 1 says that left comes first."""
    helper = LayerHelper('rank_loss', name=name)
    out = helper.create_variable_for_type_inference('float32')
    helper.append_op('rank_loss', {'Label': label, 'Left': left, 'Right': right}, {'Out': out})
    return out


def margin_rank_loss(label, left, right, margin=0.1, name=None):
    """The hinge loss of the order of two scores; a label of 1 says that left comes first, -1 that right does."""
    helper = LayerHelper('margin_rank_loss', name=name).takes(left=left)
    out = helper.create_variable_for_type_inference(left.dtype)
    activated = helper.create_variable_for_type_inference(left.dtype)
    helper.append_op('margin_rank_loss', {'Label': label, 'X1': left, 'X2': right},
                     {'Out': out, 'Activated': activated}, {'margin': margin})
    return out
