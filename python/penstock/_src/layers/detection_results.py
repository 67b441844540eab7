"""Results of detectors: non-maximum suppression, and proposals of regions that may contain objects."""

from __future__ import annotations

from penstock._src.ir.types import float_attr
from penstock._src.ir.variable import Variable
from penstock._src.layers.decorators import Attrs, layer, op_layer
from penstock._src.layers.detection_boxes import box_coder
from penstock._src.layers.helper import LayerHelper
from penstock._src.layers.nn import softmax
from penstock._src.layers.reshaping import transpose

__all__ = [
    "detection_output",
    "generate_proposals",
    "locality_aware_nms",
    "matrix_nms",
    "multiclass_nms",
    "retinanet_detection_output",
]


def _suppress(op_type, bboxes, scores, attrs, name=None, index=False):
    helper = LayerHelper(op_type, name=name).takes(bboxes=bboxes, scores=scores)
    out = helper.create_variable_for_type_inference(bboxes.dtype)
    outputs = {"Out": out}
    if index:
        outputs["Index"] = helper.create_variable_for_type_inference("int32")
    helper.append_op(op_type, {"BBoxes": bboxes, "Scores": scores}, outputs, attrs)
    out.stop_gradient = True
    return (out, outputs["Index"]) if index else out


@op_layer("multiclass_nms", stop_gradient=True)
def multiclass_nms(
    bboxes: Variable,
    scores: Variable,
    score_threshold: float,
    nms_top_k: int,
    keep_top_k: int,
    nms_threshold: float = 0.3,
    normalized: bool = True,
    nms_eta: float = 1.0,
    background_label: int = 0,
    name: str | None = None,
) -> Attrs:
    """Selects the boxes of each image and class with high scores that do not overlap better boxes (non-maximum
    suppression).

    Args:
        bboxes: shape [N, M, 4], or 8, 16, 24 or 32 instead of 4 for polygons; or shape [M, classes, 4] in a sequence
            for each image.
        scores: shape [N, classes, M], or [M, classes]; same type as `bboxes`.
        nms_eta: factor by which `nms_threshold` shrinks with each kept box.

    Returns:
        Variable: shape [kept boxes, 2 + numbers per box], rows of class, score and box, in a sequence for each image,
        same type as `bboxes`; if no box is kept, one row that holds a single -1.

    Example:
        boxes = fluid.data('boxes', [None, 20, 4])
        scores = fluid.data('scores', [None, 3, 20])
        out = fluid.layers.multiclass_nms(boxes, scores, 0.1, nms_top_k=10, keep_top_k=5)
        assert out.shape == (-1, 6)
    """


def _require_kinds(layer, kind, **values):
    for name, value in values.items():
        if not isinstance(value, kind):
            raise TypeError(f"{layer}: {name} must be of type {kind.__name__}, not {value!r}")


@op_layer(
    "locality_aware_nms", fluid_accepts={"bboxes scores": "float32 float64"}, stop_gradient=True, like=multiclass_nms
)
def locality_aware_nms(
    bboxes: Variable,
    scores: Variable,
    score_threshold: float,
    nms_top_k: int,
    keep_top_k: int,
    nms_threshold: float = 0.3,
    normalized: bool = True,
    nms_eta: float = 1.0,
    background_label: int = -1,
    name: str | None = None,
) -> Attrs:
    """Merges overlapping neighbouring boxes by averaging, then applies multiclass_nms.

    Args:
        bboxes: shape [N, M, 4], or 8, 16, 24 or 32 instead of 4 for polygons.
        scores: shape [N, 1, M], same type as `bboxes`.
        nms_top_k: the maximum number of boxes that are considered; -1: all.

    Raises:
        TypeError: an argument has the wrong type.
        ValueError: the shape of `scores` is not [N, 1, M].

    Example:
        boxes = fluid.data('boxes', [None, 20, 8])
        scores = fluid.data('scores', [None, 1, 20])
        out = fluid.layers.locality_aware_nms(boxes, scores, 0.1, nms_top_k=10, keep_top_k=5)
        assert out.shape == (-1, 10)

    Reference:
        Zhou et al.: "EAST: an efficient and accurate scene text detector", CVPR 2017.
    """
    layer = "locality_aware_nms"
    _require_kinds(layer, float, score_threshold=score_threshold, nms_threshold=nms_threshold, nms_eta=nms_eta)
    _require_kinds(layer, int, nms_top_k=nms_top_k, keep_top_k=keep_top_k, background_label=background_label)
    _require_kinds(layer, bool, normalized=normalized)
    if len(scores.shape) != 3 or scores.shape[1] != 1:
        raise ValueError(f"locality_aware_nms takes one class: scores must be [N, 1, M], not {scores.shape}")
    return None


@layer(like=multiclass_nms)
def matrix_nms(
    bboxes,
    scores,
    score_threshold,
    post_threshold,
    nms_top_k,
    keep_top_k,
    use_gaussian=False,
    gaussian_sigma=2.0,
    background_label=0,
    normalized=True,
    return_index=False,
    name=None,
):
    """Lowers the score of each box according to its overlap with better boxes, and selects boxes with high scores
    (matrix NMS).

    Args:
        bboxes (Variable): shape [N, M, 4], float32 or float64.
        scores (Variable): shape [N, classes, M], same type as `bboxes`.
        post_threshold (float): only boxes whose lowered score is above this are kept.
        use_gaussian (bool): whether scores are lowered by a Gaussian function of the overlap instead of a linear one.
        gaussian_sigma (float): parameter of the Gaussian.
        return_index (bool): whether to return the indices of the boxes too.

    Returns:
        Variable: shape [kept boxes, 6], rows of class, score and box, in a sequence for each image, same type as
        `bboxes`; with `return_index`, a pair of it and the index of each box among the boxes of all images, int32,
        shape [kept boxes, 1].

    Example:
        boxes = fluid.data('boxes', [None, 20, 4])
        scores = fluid.data('scores', [None, 3, 20])
        out, index = fluid.layers.matrix_nms(boxes, scores, 0.1, 0.1, 10, 5, return_index=True)
        assert (out.shape, index.shape) == ((-1, 6), (-1, 1))

    Reference:
        Wang, Zhang, Kong, Li, Shen: "SOLOv2: dynamic and fast instance segmentation", NeurIPS 2020.
    """
    out, index = _suppress(
        "matrix_nms",
        bboxes,
        scores,
        {
            "background_label": background_label,
            "score_threshold": score_threshold,
            "post_threshold": post_threshold,
            "nms_top_k": nms_top_k,
            "gaussian_sigma": float_attr(gaussian_sigma),
            "use_gaussian": use_gaussian,
            "keep_top_k": keep_top_k,
            "normalized": normalized,
        },
        name,
        index=True,
    )
    return (out, index) if return_index else out


@layer()
def detection_output(
    loc,
    scores,
    prior_box,
    prior_box_var,
    background_label=0,
    nms_threshold=0.3,
    nms_top_k=400,
    keep_top_k=200,
    score_threshold=0.01,
    nms_eta=1.0,
    return_index=False,
):
    """Computes the boxes that an SSD head detects: decodes the boxes, then applies softmax and non-maximum suppression.

    Args:
        loc (Variable): shape [N, M, 4], the offsets from the priors; float32 or float64.
        scores (Variable): shape [N, M, classes], the scores before softmax, same type as `loc`.
        prior_box (Variable): the priors, shape [M, 4], same type as `loc`.
        prior_box_var (Variable): their variances, shape [M, 4], same type as `loc`.
        background_label (int): has no effect: class 0 is always ignored, as in Fluid.
        nms_eta (float): has no effect: `nms_threshold` does not shrink, as in Fluid.
        return_index (bool): whether to return the indices of the boxes too.

    Returns:
        Variable: shape [kept boxes, 6], rows of class, score and box, in a sequence for each image, same type as
        `loc`; with `return_index`, a pair of it and the index of each box among the boxes of all images, int32, shape
        [kept boxes, 1].

    Example:
        loc, scores = fluid.data('loc', [None, 20, 4]), fluid.data('scores', [None, 20, 3])
        prior, var = fluid.data('prior', [20, 4]), fluid.data('var', [20, 4])
        assert fluid.layers.detection_output(loc, scores, prior, var).shape == (-1, 6)
    """
    LayerHelper("detection_output")
    boxes = box_coder(prior_box, prior_box_var, loc, code_type="decode_center_size")
    scores = transpose(softmax(scores), perm=[0, 2, 1])
    scores.stop_gradient = True
    attrs = {
        "background_label": 0,
        "nms_threshold": nms_threshold,
        "nms_top_k": nms_top_k,
        "keep_top_k": keep_top_k,
        "score_threshold": score_threshold,
        "nms_eta": 1.0,
    }
    found = _suppress("multiclass_nms2" if return_index else "multiclass_nms", boxes, scores, attrs, index=return_index)
    if return_index:
        found[1].stop_gradient = True
    return found


@layer()
def generate_proposals(
    scores,
    bbox_deltas,
    im_info,
    anchors,
    variances,
    pre_nms_top_n=6000,
    post_nms_top_n=1000,
    nms_thresh=0.5,
    min_size=0.1,
    eta=1.0,
    name=None,
    return_rois_num=False,
):
    """Proposes regions of images that may contain objects: decodes anchors and applies non-maximum suppression.

    Args:
        scores (Variable): the score of each anchor, shape [N, A, H, W], float32 or float64.
        bbox_deltas (Variable): the offsets of the regions from the anchors, shape [N, 4 * A, H, W], same type as
            `scores`.
        anchors (Variable): shape [H, W, A, 4], same type as `scores`.
        variances (Variable): the variances, by which the offsets are multiplied, shape [H, W, A, 4].
        pre_nms_top_n (int): the maximum number of anchors that are considered per image.
        post_nms_top_n (int): the maximum number of regions that are kept per image.
        nms_thresh (float): the maximum overlap of two regions that are kept.
        min_size (float): the minimum width and height of a region in the original image; at least 1.
        eta (float): factor by which `nms_thresh` shrinks.
        return_rois_num (bool): whether to also return the index at which the regions of each image end.

    Returns:
        tuple: (regions, scores), Variables of shapes [regions, 4] and [regions, 1] in a sequence for each image, same
        type as `scores`; with `return_rois_num`, a third Variable, the ends, of shape [N], int64.

    Example:
        scores, deltas = fluid.data('scores', [None, 3, 4, 4]), fluid.data('deltas', [None, 12, 4, 4])
        info = fluid.data('info', [None, 3])
        anchors, var = fluid.data('anchors', [4, 4, 3, 4]), fluid.data('var', [4, 4, 3, 4])
        rois, probabilities = fluid.layers.generate_proposals(scores, deltas, info, anchors, var)
        assert (rois.shape, probabilities.shape) == ((-1, 4), (-1, 1))

    Reference:
        Ren, He, Girshick, Sun: "Faster R-CNN", NIPS 2015.
    """
    inputs = {
        "Scores": scores,
        "BboxDeltas": bbox_deltas,
        "ImInfo": im_info,
        "Anchors": anchors,
        "Variances": variances,
    }
    helper = LayerHelper("generate_proposals", name=name).takes(scores=scores, bbox_deltas=bbox_deltas)
    rois = helper.create_variable_for_type_inference(bbox_deltas.dtype)
    probabilities = helper.create_variable_for_type_inference(scores.dtype)
    ends = helper.create_variable_for_type_inference("int32")
    helper.append_op(
        "generate_proposals",
        inputs,
        {"RpnRois": rois, "RpnRoiProbs": probabilities, "RpnRoisLod": ends},
        {
            "pre_nms_topN": pre_nms_top_n,
            "post_nms_topN": post_nms_top_n,
            "nms_thresh": nms_thresh,
            "min_size": min_size,
            "eta": eta,
        },
    )
    rois.stop_gradient = probabilities.stop_gradient = ends.stop_gradient = True
    return (rois, probabilities, ends) if return_rois_num else (rois, probabilities)


def retinanet_detection_output(
    bboxes,
    scores,
    anchors,
    im_info,
    score_threshold=0.05,
    nms_top_k=1000,
    keep_top_k=100,
    nms_threshold=0.3,
    nms_eta=1.0,
):
    """Computes the boxes that RetinaNet detects on all levels of its feature pyramid.

    Args:
        bboxes (list): the offsets of each level, Variables of shape [N, M, 4], float32 or float64.
        scores (list): the scores of each level, Variables of shape [N, M, classes], same type as `bboxes`.
        anchors (list): the anchors of each level, Variables of shape [M, 4], same type as `bboxes`.
        im_info (Variable): shape [N, 3]: height, width and scale of each image.
        score_threshold (float): only scores above this are considered; on the last level, all scores above 0.
        nms_top_k (int): the maximum number of scores that are considered per level; -1: all.
        keep_top_k (int): the maximum number of boxes that are kept per image; -1: all.
        nms_threshold (float): the maximum overlap of two boxes that are kept.
        nms_eta (float): has no effect: `nms_threshold` does not shrink, as in Fluid.

    Returns:
        Variable: shape [kept boxes, 6], rows of class (counted from 1), score and box, in a sequence for each image,
        same type as `scores`.

    Raises:
        TypeError: `im_info` or an element of a list is not a Variable.
        ValueError: a list is empty.

    Example:
        boxes = [fluid.data('boxes%d' % i, [None, 9, 4]) for i in range(2)]
        scores = [fluid.data('scores%d' % i, [None, 9, 3]) for i in range(2)]
        anchors = [fluid.data('anchors%d' % i, [9, 4]) for i in range(2)]
        info = fluid.data('info', [None, 3])
        assert fluid.layers.retinanet_detection_output(boxes, scores, anchors, info).shape == (-1, 6)

    Reference:
        Lin, Goyal, Girshick, He, Dollar: "Focal loss for dense object detection", ICCV 2017.
    """
    helper = LayerHelper("retinanet_detection_output", scores=scores, bboxes=bboxes, anchors=anchors)
    out = helper.create_variable_for_type_inference(helper.input_dtype("scores"))
    inputs = {slot: helper.multiple_input(slot.lower()) for slot in ("BBoxes", "Scores", "Anchors")}
    helper.append_op(
        "retinanet_detection_output",
        dict(inputs, ImInfo=im_info),
        {"Out": out},
        {
            "score_threshold": score_threshold,
            "nms_top_k": nms_top_k,
            "nms_threshold": nms_threshold,
            "keep_top_k": keep_top_k,
            "nms_eta": 1.0,
        },
    )
    out.stop_gradient = True
    return out
