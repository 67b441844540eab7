"""Layers for object detection: boxes, priors, targets and results."""

# Written by tools/dev/gen_names.py.
from penstock._src.names import facade

if facade.TYPE_CHECKING:
    from penstock._src.layers.detection_boxes import box_clip, box_coder, box_decoder_and_assign, iou_similarity
    from penstock._src.layers.detection_boxes import polygon_box_transform, yolo_box
    from penstock._src.layers.detection_metrics import detection_map as detection_map
    from penstock._src.layers.detection_nms import locality_aware_nms, matrix_nms, multiclass_nms
    from penstock._src.layers.detection_priors import anchor_generator, density_prior_box, multi_box_head, prior_box
    from penstock._src.layers.detection_results import detection_output, generate_proposals
    from penstock._src.layers.detection_results import retinanet_detection_output
    from penstock._src.layers.detection_targets import bipartite_match, sigmoid_focal_loss, ssd_loss, target_assign
    from penstock._src.layers.detection_targets import yolov3_loss
    from penstock._src.layers.feature_pyramid import collect_fpn_proposals, distribute_fpn_proposals
    from penstock._src.layers.rcnn_targets import generate_mask_labels, generate_proposal_labels
    from penstock._src.layers.rcnn_targets import retinanet_target_assign, rpn_target_assign
    from penstock._src.layers.roi import roi_perspective_transform

__all__ = [
    'anchor_generator', 'bipartite_match', 'box_clip', 'box_coder', 'box_decoder_and_assign', 'collect_fpn_proposals',
    'density_prior_box', 'detection_output', 'distribute_fpn_proposals', 'generate_mask_labels',
    'generate_proposal_labels', 'generate_proposals', 'iou_similarity', 'locality_aware_nms', 'matrix_nms',
    'multi_box_head', 'multiclass_nms', 'polygon_box_transform', 'prior_box', 'retinanet_detection_output',
    'retinanet_target_assign', 'roi_perspective_transform', 'rpn_target_assign', 'sigmoid_focal_loss', 'ssd_loss',
    'target_assign', 'yolo_box', 'yolov3_loss',
]

facade.make(__name__)
