# Written by tools/dev/gen_stubs.py.
# mypy: disable-error-code="override"
from typing import Any, Callable, Iterable, Iterator

from penstock.fluid.layer_helper import LayerHelper as LayerHelper
from penstock.fluid.layer_helper import describe as describe
from penstock.fluid.layer_helper import require_variables as require_variables
from penstock.fluid.layers.arithmetic import reduce_sum as reduce_sum
from penstock.fluid.layers.detection_boxes import box_coder as box_coder
from penstock.fluid.layers.detection_boxes import iou_similarity as iou_similarity
from penstock.fluid.layers.loss import smooth_l1 as smooth_l1
from penstock.fluid.layers.loss import softmax_with_cross_entropy as softmax_with_cross_entropy
from penstock.fluid.layers.nn import flatten as flatten
from penstock.fluid.layers.nn import reshape as reshape
from penstock.fluid.layers.shaping import gather as gather
from penstock.fluid.layers.shaping import shape as shape_of
from penstock.fluid.layers.shaping import slice as part_of
from penstock.fluid.layers.tensor import cast as cast
from penstock.fluid.variable import Variable as Variable

def bipartite_match(dist_matrix: Variable, match_type: str | None = ..., dist_threshold: float | None = ..., name: str | None = ...) -> tuple[Any, ...]: ...
def generate_mask_labels(im_info: Variable, gt_classes: Variable, is_crowd: Variable, gt_segms: Variable, rois: Variable, labels_int32: Variable, num_classes: int, resolution: int) -> tuple[Any, ...]: ...
def generate_proposal_labels(rpn_rois: Variable, gt_classes: Variable, is_crowd: Variable, gt_boxes: Variable, im_info: Variable, batch_size_per_im: int = ..., fg_fraction: float = ..., fg_thresh: float = ..., bg_thresh_hi: float = ..., bg_thresh_lo: float = ..., bbox_reg_weights: list[Any] = ..., class_nums: int | None = ..., use_random: bool = ..., is_cls_agnostic: bool = ..., is_cascade_rcnn: bool = ...) -> tuple[Any, ...]: ...
def retinanet_target_assign(bbox_pred: Variable, cls_logits: Variable, anchor_box: Variable, anchor_var: Variable, gt_boxes: Variable, gt_labels: Variable, is_crowd: Variable, im_info: Variable, num_classes: int = ..., positive_overlap: float = ..., negative_overlap: float = ...) -> tuple[Any, ...]: ...
def rpn_target_assign(bbox_pred: Variable, cls_logits: Variable, anchor_box: Variable, anchor_var: Variable, gt_boxes: Variable, is_crowd: Variable, im_info: Variable, rpn_batch_size_per_im: int = ..., rpn_straddle_thresh: float = ..., rpn_fg_fraction: float = ..., rpn_positive_overlap: float = ..., rpn_negative_overlap: float = ..., use_random: bool = ...) -> tuple[Any, ...]: ...
def sigmoid_focal_loss(x: Variable, label: Variable, fg_num: Variable, gamma: float = ..., alpha: float = ...) -> Variable: ...
def ssd_loss(location: Variable, confidence: Variable, gt_box: Variable, gt_label: Variable, prior_box: Variable, prior_box_var: Variable | list[Any] | None = ..., background_label: int = ..., overlap_threshold: float = ..., neg_pos_ratio: float = ..., neg_overlap: float = ..., loc_loss_weight: float = ..., conf_loss_weight: float = ..., match_type: str = ..., mining_type: str = ..., normalize: bool = ..., sample_size: int | None = ...) -> Variable: ...
def target_assign(input: Variable, matched_indices: Variable, negative_indices: Variable | None = ..., mismatch_value: int | None = ..., name: str | None = ...) -> tuple[Any, ...]: ...
def yolov3_loss(x: Variable, gt_box: Variable, gt_label: Variable, anchors: list[Any] | tuple[Any, ...], anchor_mask: list[Any] | tuple[Any, ...], class_num: int, ignore_thresh: float, downsample_ratio: int, gt_score: Variable | None = ..., use_label_smooth: bool = ..., name: str | None = ..., scale_x_y: float = ...) -> Variable: ...
__all__: list[str]
