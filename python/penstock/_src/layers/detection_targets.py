"""Training of detectors: matching boxes with objects, targets and losses."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock._src.ir.variable import Variable
from penstock._src.layers.arithmetic import reduce_sum
from penstock._src.layers.decorators import Attrs, layer, op_layer, op_layer_with_results
from penstock._src.layers.detection_boxes import box_coder, iou_similarity
from penstock._src.layers.helper import LayerHelper, require_kind
from penstock._src.layers.loss import smooth_l1, softmax_with_cross_entropy
from penstock._src.layers.reshaping import flatten, reshape
from penstock._src.layers.slicing import shape as shape_of
from penstock._src.layers.slicing import slice as part_of
from penstock._src.layers.tensor import cast

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any


def given_attrs(**attrs: Any) -> dict[str, Any]:
    """Returns the attributes that are not None; for the others the op's defaults apply."""
    return {key: value for key, value in attrs.items() if value is not None}


@op_layer_with_results("bipartite_match", "ColToRowMatchIndices ColToRowMatchDist", inputs={"DistMat": "dist_matrix"})
def bipartite_match(
    dist_matrix: Variable, match_type: str | None = None, dist_threshold: float | None = None, name: str | None = None
) -> Attrs:
    """Matches columns of a distance matrix with rows, in descending order of distance.

    Args:
        dist_matrix: shape [rows, columns] with a sequence of rows for each image; a larger distance is a better match.
        match_type: 'bipartite', the default, matches each row with one column; 'per_prediction' then matches the
            remaining columns too.
        dist_threshold: the minimum distance for matching the remaining columns; None: 0.5.

    Returns:
        tuple: (rows, distances), Variables of shape [N, columns]: the matched row of each column within its image,
        int32, or -1; and the distance of the match, same type as `dist_matrix`.

    Example:
        distances = fluid.data('distances', [None, 7], lod_level=1)
        rows, of_match = fluid.layers.bipartite_match(distances, 'per_prediction', 0.4)
        assert rows.shape == of_match.shape == (-1, 7)
    """


@op_layer_with_results(
    "target_assign",
    "Out OutWeight",
    inputs={"X": "input", "MatchIndices": "matched_indices", "NegIndices": "negative_indices"},
)
def target_assign(
    input: Variable,
    matched_indices: Variable,
    negative_indices: Variable | None = None,
    mismatch_value: int | None = None,
    name: str | None = None,
) -> Attrs:
    """Assigns to each box the target of the object that it is matched with.

    Args:
        input: the targets of the objects, shape [objects, P, K], in a sequence for each image; box j takes column j
            modulo P.
        matched_indices: shape [N, boxes], int32: the object of each box within its image, or -1.
        negative_indices: shape [indices, 1], int32, in a sequence for each image: the boxes that have weight 1 without
            an object.
        mismatch_value: the target of a box without an object; None: 0.

    Returns:
        tuple: (targets, weights): Variables of shapes [N, boxes, K], same type as `input`, and [N, boxes, 1], float32:
        1 if a box counts, else 0.

    Example:
        objects = fluid.data('objects', [None, 1, 4], lod_level=1)
        matched = fluid.data('matched', [None, 7], 'int32')
        targets, weights = fluid.layers.target_assign(objects, matched)
        assert (targets.shape, weights.shape) == ((-1, 7, 4), (-1, 7, 1))
    """


@layer()
def ssd_loss(
    location: Variable,
    confidence: Variable,
    gt_box: Variable,
    gt_label: Variable,
    prior_box: Variable,
    prior_box_var: Variable | Sequence[Any] | None = None,
    background_label: int = 0,
    overlap_threshold: float = 0.5,
    neg_pos_ratio: float = 3.0,
    neg_overlap: float = 0.5,
    loc_loss_weight: float = 1.0,
    conf_loss_weight: float = 1.0,
    match_type: str = "per_prediction",
    mining_type: str = "max_negative",
    normalize: bool = True,
    sample_size: int | None = None,
) -> Variable:
    """Computes the loss of an SSD head: the cross entropy of the classes plus the smooth L1 loss of the boxes.

    Args:
        location (Variable): shape [N, M, 4], offsets from the priors; float32.
        confidence (Variable): shape [N, M, classes], scores of classes; float32.
        gt_box (Variable): shape [objects, 4], the true boxes, in a sequence for each image; float32.
        gt_label (Variable): shape [objects, 1], their classes, in the same sequences; int32.
        prior_box (Variable): the priors, shape [M, 4], float32.
        prior_box_var (Variable|list): the variances of the priors: shape [M, 4], or 4 numbers.
        background_label (int): the class of boxes without an object.
        overlap_threshold (float): the minimum overlap of matches after the best match of each object.
        neg_pos_ratio (float): the number of boxes without an object that count per match.
        neg_overlap (float): boxes without an object count only if their overlap is below this.
        loc_loss_weight (float): the weight of the loss of the boxes.
        conf_loss_weight (float): the weight of the cross entropy.
        match_type (str): as in `bipartite_match`.
        mining_type (str): 'max_negative'.
        normalize (bool): whether to divide by the number of matches.
        sample_size (int): has no effect with 'max_negative'.

    Returns:
        Variable: shape [N, 1], float32.

    Raises:
        ValueError: `mining_type` has another value.

    Example:
        location, confidence = fluid.data('location', [None, 8, 4]), fluid.data('confidence', [None, 8, 3])
        box = fluid.data('box', [None, 4], lod_level=1)
        label = fluid.data('label', [None, 1], 'int32', lod_level=1)
        prior, var = fluid.data('prior', [8, 4]), fluid.data('var', [8, 4])
        assert fluid.layers.ssd_loss(location, confidence, box, label, prior, var).shape == (-1, 1)

    Reference:
        Liu et al.: "SSD: single shot multibox detector", ECCV 2016.
    """
    if mining_type != "max_negative":
        raise ValueError(f"mining_type must be max_negative, not {mining_type!r}")
    helper = LayerHelper("ssd_loss").takes(location=location, confidence=confidence, gt_box=gt_box, gt_label=gt_label)
    counts = shape_of(confidence)
    matched, overlaps = bipartite_match(iou_similarity(gt_box, prior_box), match_type, overlap_threshold)
    gt_label = reshape(gt_label, shape=(len(gt_label.shape) - 1) * [0] + [-1, 1])
    gt_label.stop_gradient = True
    label, _ = target_assign(gt_label, matched, mismatch_value=background_label)
    confidence = flatten(confidence, axis=2)
    label = flatten(cast(label, "int64"), axis=2)
    label.stop_gradient = True
    entropies: Any = softmax_with_cross_entropy(confidence, label)  # one result, without return_softmax
    by_image = part_of(counts, axes=[0], starts=[0], ends=[2])
    by_image.stop_gradient = True
    entropies = reshape(entropies, shape=[-1, 0], actual_shape=by_image)
    entropies.stop_gradient = True
    negatives, matched = _mine(helper, entropies, matched, overlaps, neg_pos_ratio, neg_overlap, sample_size)
    variances: Any = prior_box_var
    distances = box_coder(prior_box, variances, gt_box, code_type="encode_center_size")
    box, box_weight = target_assign(distances, matched, mismatch_value=background_label)
    label, label_weight = target_assign(gt_label, matched, negatives, mismatch_value=background_label)
    label = cast(flatten(label, axis=2), "int64")
    entropies = softmax_with_cross_entropy(confidence, label)
    label_weight = flatten(label_weight, axis=2)
    entropies = entropies * label_weight
    label.stop_gradient = label_weight.stop_gradient = True
    location, box = flatten(location, axis=2), flatten(box, axis=2)
    places = smooth_l1(location, box)
    box_weight = flatten(box_weight, axis=2)
    places = places * box_weight
    box.stop_gradient = box_weight.stop_gradient = True
    loss = reshape(conf_loss_weight * entropies + loc_loss_weight * places, shape=[-1, 0], actual_shape=by_image)
    loss = reduce_sum(loss, dim=1, keep_dim=True)
    return loss / reduce_sum(box_weight) if normalize else loss


def _mine(
    helper: LayerHelper,
    losses: Variable,
    matched: Variable,
    overlaps: Variable,
    neg_pos_ratio: float | None,
    neg_overlap: float | None,
    sample_size: int | None,
) -> tuple[Variable, Variable]:
    """Returns (the boxes without an object that have the highest loss, the matches)."""
    negatives = helper.create_variable_for_type_inference("int32")
    updated = helper.create_variable_for_type_inference(matched.dtype)
    attrs = given_attrs(
        neg_pos_ratio=neg_pos_ratio, neg_dist_threshold=neg_overlap, mining_type="max_negative", sample_size=sample_size
    )
    helper.append_op(
        "mine_hard_examples",
        {"ClsLoss": losses, "MatchIndices": matched, "MatchDist": overlaps},
        {"NegIndices": negatives, "UpdatedMatchIndices": updated},
        attrs,
    )
    return negatives, updated


@op_layer(
    "yolov3_loss",
    inputs={"GTBox": "gt_box", "GTLabel": "gt_label", "GTScore": "gt_score"},
    output="Loss",
    outputs="Loss ObjectnessMask GTMatchMask",
)
def yolov3_loss(
    x: Variable,
    gt_box: Variable,
    gt_label: Variable,
    anchors: list[Any] | tuple[Any, ...],
    anchor_mask: list[Any] | tuple[Any, ...],
    class_num: int,
    ignore_thresh: float,
    downsample_ratio: int,
    gt_score: Variable | None = None,
    use_label_smooth: bool = True,
    name: str | None = None,
    scale_x_y: float = 1.0,
) -> Attrs:
    """Computes the loss of a YOLOv3 head against the true boxes.

    Args:
        x: shape [N, len(anchor_mask) * (5 + class_num), H, H].
        gt_box: shape [N, boxes, 4], same type as `x`: centre x and y, width and height of the true boxes, relative to
            the image; boxes without an extent do not count.
        gt_label: shape [N, boxes], int32, their classes.
        anchors: width and height of each anchor, one after the other.
        anchor_mask: the indices of the anchors that `x` predicts.
        ignore_thresh: boxes whose overlap with a true box is above this do not count as background.
        downsample_ratio: width and height of a cell in pixels of the network's input.
        gt_score: the weights of the true boxes, shape [N, boxes], same type as `x`.
        use_label_smooth: whether to smooth the target probabilities of classes.
        scale_x_y: scale of the centre's offset in its cell.

    Returns:
        Variable: shape [N], same type as `x`.

    Raises:
        TypeError: `x`, `gt_box`, `gt_label` or `gt_score` is not a Variable, or an argument has the wrong type.

    Example:
        x = fluid.data('x', [None, 14, 4, 4])
        box, label = fluid.data('box', [None, 5, 4]), fluid.data('label', [None, 5], 'int32')
        loss = fluid.layers.yolov3_loss(x, box, label, [10, 13, 16, 30, 33, 23], [0, 1], 2, 0.7, 32)
        assert loss.shape == (-1,)

    Reference:
        Redmon, Farhadi: "YOLOv3: an incremental improvement", 2018.
    """
    require_kind("yolov3_loss", list, anchors=anchors, anchor_mask=anchor_mask)
    require_kind("yolov3_loss", int, class_num=class_num)
    require_kind("yolov3_loss", float, ignore_thresh=ignore_thresh)
    require_kind("yolov3_loss", bool, use_label_smooth=use_label_smooth)
    return {"anchors": list(anchors), "anchor_mask": list(anchor_mask)}


@op_layer("sigmoid_focal_loss", inputs={"FgNum": "fg_num"})
def sigmoid_focal_loss(
    x: Variable, label: Variable, fg_num: Variable, gamma: float = 2.0, alpha: float = 0.25
) -> Attrs:
    """Computes the focal loss: the sigmoid cross entropy with a lower weight for easy samples.

    Args:
        x: the logits, shape [N, classes].
        label: shape [N, 1], int32: 0 is the background, c + 1 is class c, and -1 does not count.
        fg_num: shape [1], int32: the number of samples that are not background.
        gamma: exponent of the weight that reduces easy samples.
        alpha: the weight of samples of a class.

    Example:
        x, label = fluid.data('x', [None, 5]), fluid.data('label', [None, 1], 'int32')
        loss = fluid.layers.sigmoid_focal_loss(x, label, fluid.data('count', [1], 'int32'))
        assert loss.shape == (-1, 5)

    Reference:
        Lin, Goyal, Girshick, He, Dollar: "Focal loss for dense object detection", ICCV 2017.
    """
