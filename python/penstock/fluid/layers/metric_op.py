"""Metrics computed by ops."""

from penstock.fluid.layer_helper import LayerHelper
from penstock.fluid.layers import nn

__all__ = ['accuracy']


def accuracy(input, label, k=1, correct=None, total=None):
    """The share of rows whose label is among the k best; the counts go to `correct` and `total` if given."""
    helper = LayerHelper('accuracy')
    values, indices = nn.topk(input, k=k)
    share = helper.create_variable_for_type_inference('float32')
    if correct is None:
        correct = helper.create_variable_for_type_inference('int32')
    if total is None:
        total = helper.create_variable_for_type_inference('int32')
    helper.append_op('accuracy', {'Out': values, 'Indices': indices, 'Label': label}, {
        'Accuracy': share,
        'Correct': correct,
        'Total': total
    })
    return share
