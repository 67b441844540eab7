"""Losses of examples, most with one value per example."""

# Written by tools/dev/gen_names.py.
from penstock._src.names import facade

if facade.TYPE_CHECKING:
    from penstock._src.ir.variable import Variable as Variable
    from penstock._src.layers.helper import LayerHelper as LayerHelper
    from penstock._src.layers.loss import cross_entropy, huber_loss, kldiv_loss, label_smooth, log_loss
    from penstock._src.layers.loss import margin_rank_loss, one_hot, rank_loss, sigmoid_cross_entropy_with_logits
    from penstock._src.layers.loss import smooth_l1, softmax_with_cross_entropy, square_error_cost
    from penstock._src.layers.ranking_loss import bpr_loss, center_loss, mse_loss, npair_loss
    from penstock._src.layers.ranking_loss import teacher_student_sigmoid_loss
    from penstock._src.layers.sampled_softmax import hsigmoid, nce, sampled_softmax_with_cross_entropy
    from penstock._src.layers.sequence_labeling import edit_distance, warpctc

__all__ = [
    'bpr_loss', 'center_loss', 'cross_entropy', 'edit_distance', 'hsigmoid', 'huber_loss', 'kldiv_loss',
    'label_smooth', 'log_loss', 'margin_rank_loss', 'mse_loss', 'nce', 'npair_loss', 'one_hot', 'rank_loss',
    'sampled_softmax_with_cross_entropy', 'sigmoid_cross_entropy_with_logits', 'smooth_l1',
    'softmax_with_cross_entropy', 'square_error_cost', 'teacher_student_sigmoid_loss', 'warpctc',
]

facade.make(__name__)
