"""Metrics computed by ops."""

from penstock.fluid.initializer import Constant
from penstock.fluid.layer_helper import LayerHelper
from penstock.fluid.layers import nn

__all__ = ['accuracy', 'auc']


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


def auc(input, label, curve='ROC', num_thresholds=2**12 - 1, topk=1, slide_steps=1):
    """The area under the ROC curve, or of precision over recall ('PR'): over all batches so far, over the last
    slide_steps (0: all), and the four statistics."""
    helper = LayerHelper('auc')
    all_batches = helper.create_variable_for_type_inference('float64')
    last_batches = helper.create_variable_for_type_inference('float64')
    buckets = num_thresholds + 1

    def statistic(shape):
        return helper.create_global_variable(persistable=True, dtype='int64', shape=shape)

    window = [(1 + slide_steps) * buckets + 1] if slide_steps else [1, buckets]    # of 0 steps: of all
    sliding = [statistic(window) for _ in range(2)]
    total = [statistic([1, buckets]) for _ in range(2)]
    for var in sliding + total:
        helper.set_variable_initializer(var, Constant(0.0))
    for out, (positive, negative), steps in ((last_batches, sliding, slide_steps), (all_batches, total, 0)):
        helper.append_op(
            'auc', {'Predict': input, 'Label': label, 'StatPos': positive, 'StatNeg': negative},
            {'AUC': out, 'StatPosOut': positive, 'StatNegOut': negative}, {
                'curve': curve,
                'num_thresholds': num_thresholds,
                'slide_steps': steps
            })
    return all_batches, last_batches, sliding + total
