"""Results of detectors: boxes of SSD and RetinaNet, and proposals of regions that may contain objects."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock._src.ir.variable import Variable
from penstock._src.layers.decorators import Attrs, layer, op_layer_with_results
from penstock._src.layers.detection_boxes import box_coder
from penstock._src.layers.detection_nms import multiclass_nms, multiclass_nms2
from penstock._src.layers.helper import LayerHelper
from penstock._src.layers.nn import softmax
from penstock._src.layers.reshaping import transpose

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any


@layer()
def detection_output(
    loc: Variable,
    scores: Variable,
    prior_box: Variable,
    prior_box_var: Variable,
    background_label: int = 0,
    nms_threshold: float = 0.3,
    nms_top_k: int = 400,
    keep_top_k: int = 200,
    score_threshold: float = 0.01,
    nms_eta: float = 1.0,
    return_index: bool = False,
) -> Variable | tuple[Variable, ...]:
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
    given = (boxes, scores, score_threshold, nms_top_k, keep_top_k, nms_threshold)
    return multiclass_nms2(*given, return_index=True) if return_index else multiclass_nms(*given)


@op_layer_with_results(
    "generate_proposals",
    "RpnRois RpnRoiProbs RpnRoisLod",
    attrs={"pre_nms_topN": "pre_nms_top_n", "post_nms_topN": "post_nms_top_n"},
    stop_gradient=True,
    returned_if="return_rois_num",
)
def generate_proposals(
    scores: Variable,
    bbox_deltas: Variable,
    im_info: Variable,
    anchors: Variable,
    variances: Variable,
    pre_nms_top_n: int = 6000,
    post_nms_top_n: int = 1000,
    nms_thresh: float = 0.5,
    min_size: float = 0.1,
    eta: float = 1.0,
    name: str | None = None,
    return_rois_num: bool = False,
) -> Attrs:
    """Proposes regions of images that may contain objects: decodes anchors and applies non-maximum suppression.

    Args:
        scores: the score of each anchor, shape [N, A, H, W].
        bbox_deltas: the offsets of the regions from the anchors, shape [N, 4 * A, H, W], same type as `scores`.
        anchors: shape [H, W, A, 4], same type as `scores`.
        variances: the variances, by which the offsets are multiplied, shape [H, W, A, 4].
        pre_nms_top_n: the maximum number of anchors that are considered per image.
        post_nms_top_n: the maximum number of regions that are kept per image.
        nms_thresh: the maximum overlap of two regions that are kept.
        min_size: the minimum width and height of a region in the original image; at least 1.
        eta: factor by which `nms_thresh` shrinks.
        return_rois_num: whether to also return the index at which the regions of each image end.

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


def retinanet_detection_output(
    bboxes: Sequence[Any],
    scores: Sequence[Any],
    anchors: Sequence[Any],
    im_info: Variable,
    score_threshold: float = 0.05,
    nms_top_k: int = 1000,
    keep_top_k: int = 100,
    nms_threshold: float = 0.3,
    nms_eta: float = 1.0,
) -> Variable:
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
