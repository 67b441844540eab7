"""Layers for object detection: boxes, priors, targets and results."""

# Written by tools/dev/gen_names.py.
from penstock._src.layers.detection_boxes import (
    box_clip as box_clip, box_coder as box_coder, box_decoder_and_assign as box_decoder_and_assign,
    iou_similarity as iou_similarity, polygon_box_transform as polygon_box_transform, yolo_box as yolo_box,
)
from penstock._src.layers.detection_metrics import detection_map as detection_map
from penstock._src.layers.detection_nms import (
    locality_aware_nms as locality_aware_nms, matrix_nms as matrix_nms, multiclass_nms as multiclass_nms,
)
from penstock._src.layers.detection_priors import (
    anchor_generator as anchor_generator, density_prior_box as density_prior_box, multi_box_head as multi_box_head,
    prior_box as prior_box,
)
from penstock._src.layers.detection_results import (
    detection_output as detection_output, generate_proposals as generate_proposals,
    retinanet_detection_output as retinanet_detection_output,
)
from penstock._src.layers.detection_targets import (
    bipartite_match as bipartite_match, sigmoid_focal_loss as sigmoid_focal_loss, ssd_loss as ssd_loss,
    target_assign as target_assign, yolov3_loss as yolov3_loss,
)
from penstock._src.layers.feature_pyramid import (
    collect_fpn_proposals as collect_fpn_proposals, distribute_fpn_proposals as distribute_fpn_proposals,
)
from penstock._src.layers.rcnn_targets import (
    generate_mask_labels as generate_mask_labels, generate_proposal_labels as generate_proposal_labels,
    retinanet_target_assign as retinanet_target_assign, rpn_target_assign as rpn_target_assign,
)
from penstock._src.layers.roi import roi_perspective_transform as roi_perspective_transform
from penstock._src.names import facade

__all__ = [
    'anchor_generator', 'bipartite_match', 'box_clip', 'box_coder', 'box_decoder_and_assign', 'collect_fpn_proposals',
    'density_prior_box', 'detection_output', 'distribute_fpn_proposals', 'generate_mask_labels',
    'generate_proposal_labels', 'generate_proposals', 'iou_similarity', 'locality_aware_nms', 'matrix_nms',
    'multi_box_head', 'multiclass_nms', 'polygon_box_transform', 'prior_box', 'retinanet_detection_output',
    'retinanet_target_assign', 'roi_perspective_transform', 'rpn_target_assign', 'sigmoid_focal_loss', 'ssd_loss',
    'target_assign', 'yolo_box', 'yolov3_loss',
]

facade.make(__name__)
