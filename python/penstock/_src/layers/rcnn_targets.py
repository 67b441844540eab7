"""Training targets of detectors with region proposals: of anchors, of proposals, of masks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock._src.ir.variable import Variable
from penstock._src.layers.decorators import Attrs, layer, op_layer_with_results
from penstock._src.layers.helper import LayerHelper
from penstock._src.layers.reshaping import reshape
from penstock._src.layers.slicing import gather

if TYPE_CHECKING:
    from typing import Any


def _assign_anchors(
    op_type: str,
    inputs: dict[str, Variable],
    attrs: dict[str, Any],
    bbox_pred: Variable,
    cls_logits: Variable,
    classes: int,
    counts: Any = (),
) -> tuple[Any, ...]:
    """Returns the scores and offsets predicted for the anchors that the op selects, then the op's other outputs."""
    helper = LayerHelper(op_type)
    helper.require_slots(inputs)
    types: dict[str, Any] = dict.fromkeys(("LocationIndex", "ScoreIndex", "TargetLabel"), "int32")
    types.update(dict.fromkeys(("TargetBBox", "BBoxInsideWeight"), inputs["Anchor"].dtype))
    types.update(dict.fromkeys(counts, "int32"))
    made = {slot: helper.create_variable_for_type_inference(dtype) for slot, dtype in types.items()}
    helper.append_op(op_type, inputs, made, attrs)
    for var in made.values():
        var.stop_gradient = True
    locations, scores, *others = made.values()
    logits, found = reshape(cls_logits, shape=[-1, classes]), reshape(bbox_pred, shape=[-1, 4])
    return gather(logits, scores), gather(found, locations), *others


@layer()
def rpn_target_assign(
    bbox_pred: Variable,
    cls_logits: Variable,
    anchor_box: Variable,
    anchor_var: Variable,
    gt_boxes: Variable,
    is_crowd: Variable,
    im_info: Variable,
    rpn_batch_size_per_im: int = 256,
    rpn_straddle_thresh: float = 0.0,
    rpn_fg_fraction: float = 0.5,
    rpn_positive_overlap: float = 0.7,
    rpn_negative_overlap: float = 0.3,
    use_random: bool = True,
) -> tuple[Any, ...]:
    """Selects the anchors on which a region proposal network is trained, its predictions for them, and their targets.

    Args:
        bbox_pred (Variable): the predicted offsets, shape [N, A, 4], float32 or float64.
        cls_logits (Variable): the predicted scores, shape [N, A, 1], same type as `bbox_pred`.
        anchor_box (Variable): the anchors, shape [A, 4], same type as `bbox_pred`.
        anchor_var (Variable): has no effect.
        gt_boxes (Variable): the true boxes, shape [objects, 4], in a sequence for each image.
        is_crowd (Variable): shape [objects, 1], int32: not 0 if a box is a crowd, which does not count.
        rpn_batch_size_per_im (int): the number of anchors per image.
        rpn_straddle_thresh (float): the maximum distance by which an anchor may extend beyond the image; negative: no
            limit.
        rpn_fg_fraction (float): the maximum share of anchors for objects.
        rpn_positive_overlap (float): the minimum overlap of anchors for objects.
        rpn_negative_overlap (float): anchors for the background have an overlap below this.
        use_random (bool): whether to draw anchors at random.

    Returns:
        tuple: Variables (scores [S, 1], offsets [F, 4], labels [S, 1], target offsets [F, 4], weights of the target
        offsets [F, 4]), where S is the number of selected anchors and F the number of those for objects. Labels are
        int32.

    Example:
        found, logits = fluid.data('found', [None, 20, 4]), fluid.data('logits', [None, 20, 1])
        anchors, var = fluid.data('anchors', [20, 4]), fluid.data('var', [20, 4])
        boxes = fluid.data('boxes', [None, 4], lod_level=1)
        crowd = fluid.data('crowd', [None, 1], 'int32', lod_level=1)
        info = fluid.data('info', [None, 3])
        targets = fluid.layers.rpn_target_assign(found, logits, anchors, var, boxes, crowd, info)
        assert [target.shape for target in targets] == [(-1, 1), (-1, 4), (-1, 1), (-1, 4), (-1, 4)]

    Reference:
        Ren, He, Girshick, Sun: "Faster R-CNN", NIPS 2015.
    """
    return _assign_anchors(
        "rpn_target_assign",
        {"Anchor": anchor_box, "GtBoxes": gt_boxes, "IsCrowd": is_crowd, "ImInfo": im_info},
        {
            "rpn_batch_size_per_im": rpn_batch_size_per_im,
            "rpn_straddle_thresh": rpn_straddle_thresh,
            "rpn_positive_overlap": rpn_positive_overlap,
            "rpn_negative_overlap": rpn_negative_overlap,
            "rpn_fg_fraction": rpn_fg_fraction,
            "use_random": use_random,
        },
        bbox_pred,
        cls_logits,
        1,
    )


@layer(
    "retinanet_target_assign",
    fluid_accepts={
        "bbox_pred cls_logits anchor_box anchor_var gt_boxes im_info": "float32 float64",
        "gt_labels is_crowd": "int32",
    },
    like=rpn_target_assign,
)
def retinanet_target_assign(
    bbox_pred: Variable,
    cls_logits: Variable,
    anchor_box: Variable,
    anchor_var: Variable,
    gt_boxes: Variable,
    gt_labels: Variable,
    is_crowd: Variable,
    im_info: Variable,
    num_classes: int = 1,
    positive_overlap: float = 0.5,
    negative_overlap: float = 0.4,
) -> tuple[Any, ...]:
    """Selects the anchors on which RetinaNet is trained, its predictions for them, and their targets.

    Args:
        bbox_pred (Variable): the predicted offsets, shape [N, A, 4].
        cls_logits (Variable): the predicted scores, shape [N, A, num_classes], same type as `bbox_pred`.
        gt_labels (Variable): their classes, counted from 1, shape [objects, 1].
        is_crowd (Variable): shape [objects, 1]: not 0 if a box is a crowd, which does not count.
        positive_overlap (float): the minimum overlap of anchors for objects.
        negative_overlap (float): anchors for the background have an overlap below this.

    Returns:
        tuple: Variables (scores [S, num_classes], offsets [F, 4], labels [S, 1], target offsets [F, 4], weights of the
        target offsets [F, 4], number of anchors for objects of each image plus 1 [N, 1]), where S is the number of
        selected anchors and F the number of those for objects. Labels and numbers are int32.

    Example:
        found, logits = fluid.data('found', [None, 20, 4]), fluid.data('logits', [None, 20, 3])
        anchors, var = fluid.data('anchors', [20, 4]), fluid.data('var', [20, 4])
        boxes = fluid.data('boxes', [None, 4], lod_level=1)
        labels = fluid.data('labels', [None, 1], 'int32', lod_level=1)
        crowd = fluid.data('crowd', [None, 1], 'int32', lod_level=1)
        info = fluid.data('info', [None, 3])
        targets = fluid.layers.retinanet_target_assign(found, logits, anchors, var, boxes, labels, crowd, info, 3)
        assert targets[0].shape == (-1, 3) and targets[5].shape == (-1, 1)

    Reference:
        Lin, Goyal, Girshick, He, Dollar: "Focal loss for dense object detection", ICCV 2017.
    """
    return _assign_anchors(
        "retinanet_target_assign",
        {"Anchor": anchor_box, "GtBoxes": gt_boxes, "GtLabels": gt_labels, "IsCrowd": is_crowd, "ImInfo": im_info},
        {"positive_overlap": positive_overlap, "negative_overlap": negative_overlap},
        bbox_pred,
        cls_logits,
        num_classes,
        ["ForegroundNumber"],
    )


@op_layer_with_results(
    "generate_proposal_labels", "Rois LabelsInt32 BboxTargets BboxInsideWeights BboxOutsideWeights", stop_gradient=True
)
def generate_proposal_labels(
    rpn_rois: Variable,
    gt_classes: Variable,
    is_crowd: Variable,
    gt_boxes: Variable,
    im_info: Variable,
    batch_size_per_im: int = 256,
    fg_fraction: float = 0.25,
    fg_thresh: float = 0.25,
    bg_thresh_hi: float = 0.5,
    bg_thresh_lo: float = 0.0,
    bbox_reg_weights: list[float] = [0.1, 0.1, 0.2, 0.2],
    class_nums: int | None = None,
    use_random: bool = True,
    is_cls_agnostic: bool = False,
    is_cascade_rcnn: bool = False,
) -> Attrs:
    """Selects the regions on which the second stage of a detector is trained, and their targets.

    Args:
        rpn_rois: shape [regions, 4], in a sequence for each image.
        gt_classes: shape [objects, 1], int32, the classes of the true boxes.
        is_crowd: shape [objects, 1], int32: not 0 if a box is a crowd.
        gt_boxes: the true boxes, shape [objects, 4], in a sequence for each image; same type as `rpn_rois`.
        batch_size_per_im: the number of regions per image.
        fg_fraction: the maximum share of regions for objects.
        fg_thresh: the minimum overlap of regions for objects.
        bg_thresh_hi: regions for the background have an overlap below this.
        bg_thresh_lo: the minimum overlap of regions for the background.
        bbox_reg_weights: divisors of the four offsets.
        class_nums: the number of classes, including the background.
        use_random: whether to draw regions at random.
        is_cls_agnostic: whether all classes share the targets.
        is_cascade_rcnn: whether to keep all regions and add no true boxes to the regions.

    Returns:
        tuple: Variables (regions [R, 4], classes [R, 1], target offsets [R, 4 * class_nums], inside weights and outside
        weights of the same shape), in a sequence for each image. Classes are int32, the others have the type of
        `rpn_rois`.

    Example:
        rois, boxes = fluid.data('rois', [None, 4], lod_level=1), fluid.data('boxes', [None, 4], lod_level=1)
        classes = fluid.data('classes', [None, 1], 'int32', lod_level=1)
        crowd = fluid.data('crowd', [None, 1], 'int32', lod_level=1)
        info = fluid.data('info', [None, 3])
        made = fluid.layers.generate_proposal_labels(rois, classes, crowd, boxes, info, class_nums=3)
        assert [var.shape for var in made] == [(-1, 4), (-1, 1), (-1, 12), (-1, 12), (-1, 12)]

    Reference:
        Ren, He, Girshick, Sun: "Faster R-CNN", NIPS 2015.
    """


@op_layer_with_results("generate_mask_labels", "MaskRois RoiHasMaskInt32 MaskInt32", stop_gradient=True)
def generate_mask_labels(
    im_info: Variable,
    gt_classes: Variable,
    is_crowd: Variable,
    gt_segms: Variable,
    rois: Variable,
    labels_int32: Variable,
    num_classes: int,
    resolution: int,
) -> Attrs:
    """Computes the masks on which the mask head of a detector is trained.

    Args:
        gt_classes: the classes of the objects, shape [objects, 1], int32, in a sequence for each image.
        is_crowd: shape [objects, 1], int32: not 0 if an object is a crowd, which has no mask.
        gt_segms: shape [points, 2]: x and y of the objects' polygons, with three levels of sequences: images, objects,
            polygons; same type as `im_info`.
        rois: shape [regions, 4], in a sequence for each image, as returned by `generate_proposal_labels`.
        labels_int32: their classes, shape [regions, 1], int32.
        num_classes: the number of classes, including the background.

    Returns:
        tuple: Variables (regions with a mask [M, 4], their indices within their image [M, 1], masks [M, num_classes *
        resolution * resolution]), in a sequence for each image. Masks and indices are int32. The part of a mask that
        belongs to the region's class is 1 inside the object and 0 outside; the parts of the other classes are -1.

    Example:
        info, rois = fluid.data('info', [None, 3]), fluid.data('rois', [None, 4], lod_level=1)
        classes = fluid.data('classes', [None, 1], 'int32', lod_level=1)
        crowd = fluid.data('crowd', [None, 1], 'int32', lod_level=1)
        points = fluid.data('points', [None, 2], lod_level=3)
        labels = fluid.data('labels', [None, 1], 'int32', lod_level=1)
        made = fluid.layers.generate_mask_labels(info, classes, crowd, points, rois, labels, 3, 14)
        assert made[2].shape == (-1, 588)

    Reference:
        He, Gkioxari, Dollar, Girshick: "Mask R-CNN", ICCV 2017.
    """
