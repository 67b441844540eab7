"""Losses of examples, most with one value per example."""

# Written by tools/dev/gen_names.py.
from penstock._src.names import facade

if facade.TYPE_CHECKING:
    from penstock._src.ir.variable import Variable as Variable
    from penstock._src.layers.helper import LayerHelper as LayerHelper
    from penstock._src.layers.loss import cross_entropy as cross_entropy, huber_loss as huber_loss
    from penstock._src.layers.loss import kldiv_loss as kldiv_loss, label_smooth as label_smooth
    from penstock._src.layers.loss import log_loss as log_loss, margin_rank_loss as margin_rank_loss
    from penstock._src.layers.loss import one_hot as one_hot, rank_loss as rank_loss
    from penstock._src.layers.loss import sigmoid_cross_entropy_with_logits as sigmoid_cross_entropy_with_logits
    from penstock._src.layers.loss import smooth_l1 as smooth_l1
    from penstock._src.layers.loss import softmax_with_cross_entropy as softmax_with_cross_entropy
    from penstock._src.layers.loss import square_error_cost as square_error_cost
    from penstock._src.layers.ranking_loss import bpr_loss as bpr_loss, center_loss as center_loss
    from penstock._src.layers.ranking_loss import mse_loss as mse_loss, npair_loss as npair_loss
    from penstock._src.layers.ranking_loss import teacher_student_sigmoid_loss as teacher_student_sigmoid_loss
    from penstock._src.layers.sampled_softmax import hsigmoid as hsigmoid, nce as nce
    from penstock._src.layers.sampled_softmax import (
        sampled_softmax_with_cross_entropy as sampled_softmax_with_cross_entropy,
    )
    from penstock._src.layers.sequence_labeling import edit_distance as edit_distance, warpctc as warpctc

__all__ = [
    'bpr_loss', 'center_loss', 'cross_entropy', 'edit_distance', 'hsigmoid', 'huber_loss', 'kldiv_loss',
    'label_smooth', 'log_loss', 'margin_rank_loss', 'mse_loss', 'nce', 'npair_loss', 'one_hot', 'rank_loss',
    'sampled_softmax_with_cross_entropy', 'sigmoid_cross_entropy_with_logits', 'smooth_l1',
    'softmax_with_cross_entropy', 'square_error_cost', 'teacher_student_sigmoid_loss', 'warpctc',
]

facade.make(__name__)
