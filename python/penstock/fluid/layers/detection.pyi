# Written by tools/dev/gen_stubs.py.
# mypy: disable-error-code="override"
from typing import Any, Callable, Iterable, Iterator

from penstock.fluid.layers.detection_boxes import box_clip as box_clip
from penstock.fluid.layers.detection_boxes import box_coder as box_coder
from penstock.fluid.layers.detection_boxes import box_decoder_and_assign as box_decoder_and_assign
from penstock.fluid.layers.detection_boxes import iou_similarity as iou_similarity
from penstock.fluid.layers.detection_boxes import polygon_box_transform as polygon_box_transform
from penstock.fluid.layers.detection_boxes import yolo_box as yolo_box
from penstock.fluid.layers.detection_map import detection_map as detection_map
from penstock.fluid.layers.detection_priors import anchor_generator as anchor_generator
from penstock.fluid.layers.detection_priors import density_prior_box as density_prior_box
from penstock.fluid.layers.detection_priors import multi_box_head as multi_box_head
from penstock.fluid.layers.detection_priors import prior_box as prior_box
from penstock.fluid.layers.detection_results import collect_fpn_proposals as collect_fpn_proposals
from penstock.fluid.layers.detection_results import detection_output as detection_output
from penstock.fluid.layers.detection_results import distribute_fpn_proposals as distribute_fpn_proposals
from penstock.fluid.layers.detection_results import generate_proposals as generate_proposals
from penstock.fluid.layers.detection_results import locality_aware_nms as locality_aware_nms
from penstock.fluid.layers.detection_results import matrix_nms as matrix_nms
from penstock.fluid.layers.detection_results import multiclass_nms as multiclass_nms
from penstock.fluid.layers.detection_results import retinanet_detection_output as retinanet_detection_output
from penstock.fluid.layers.detection_targets import bipartite_match as bipartite_match
from penstock.fluid.layers.detection_targets import generate_mask_labels as generate_mask_labels
from penstock.fluid.layers.detection_targets import generate_proposal_labels as generate_proposal_labels
from penstock.fluid.layers.detection_targets import retinanet_target_assign as retinanet_target_assign
from penstock.fluid.layers.detection_targets import rpn_target_assign as rpn_target_assign
from penstock.fluid.layers.detection_targets import sigmoid_focal_loss as sigmoid_focal_loss
from penstock.fluid.layers.detection_targets import ssd_loss as ssd_loss
from penstock.fluid.layers.detection_targets import target_assign as target_assign
from penstock.fluid.layers.detection_targets import yolov3_loss as yolov3_loss

def getattr_of(module: Any) -> Any: ...
__all__: list[str]
