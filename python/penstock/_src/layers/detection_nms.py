"""Non-maximum suppression: layers that select, of boxes which overlap, those with the highest scores."""

from __future__ import annotations

from penstock._src.ir.types import float_attr
from penstock._src.ir.variable import Variable
from penstock._src.layers.decorators import Attrs, op_layer, op_layer_with_results
from penstock._src.layers.helper import require_kind


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


@op_layer_with_results(
    "multiclass_nms2", "Out Index", stop_gradient=True, returned_if="return_index", like=multiclass_nms
)
def multiclass_nms2(
    bboxes: Variable,
    scores: Variable,
    score_threshold: float,
    nms_top_k: int,
    keep_top_k: int,
    nms_threshold: float = 0.3,
    normalized: bool = True,
    nms_eta: float = 1.0,
    background_label: int = 0,
    return_index: bool = False,
    name: str | None = None,
) -> Attrs:
    """Applies non-maximum suppression like fluid.layers.multiclass_nms, and can also return the indices of the boxes.

    Args:
        return_index: whether to return the indices of the boxes too.

    Returns:
        Variable | tuple: shape [kept boxes, 2 + numbers per box], rows of class, score and box, in a sequence for each
        image, same type as `bboxes`; with `return_index`, a pair of it and the index of each box among the boxes of all
        images, int32, shape [kept boxes, 1].

    Example:
        boxes, scores = fluid.data('boxes', [None, 20, 4]), fluid.data('scores', [None, 3, 20])
        out, index = fluid.contrib.layers.multiclass_nms2(boxes, scores, 0.1, 10, keep_top_k=5, return_index=True)
    """


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
    require_kind(layer, float, score_threshold=score_threshold, nms_threshold=nms_threshold, nms_eta=nms_eta)
    require_kind(layer, int, nms_top_k=nms_top_k, keep_top_k=keep_top_k, background_label=background_label)
    require_kind(layer, bool, normalized=normalized)
    if len(scores.shape) != 3 or scores.shape[1] != 1:
        raise ValueError(f"locality_aware_nms takes one class: scores must be [N, 1, M], not {scores.shape}")
    return None


@op_layer_with_results("matrix_nms", "Out Index", stop_gradient="Out", returned_if="return_index", like=multiclass_nms)
def matrix_nms(
    bboxes: Variable,
    scores: Variable,
    score_threshold: float,
    post_threshold: float,
    nms_top_k: int,
    keep_top_k: int,
    use_gaussian: bool = False,
    gaussian_sigma: float = 2.0,
    background_label: int = 0,
    normalized: bool = True,
    return_index: bool = False,
    name: str | None = None,
) -> Attrs:
    """Lowers the score of each box according to its overlap with better boxes, and selects boxes with high scores
    (matrix NMS).

    Args:
        bboxes: shape [N, M, 4].
        scores: shape [N, classes, M], same type as `bboxes`.
        post_threshold: only boxes whose lowered score is above this are kept.
        use_gaussian: whether scores are lowered by a Gaussian function of the overlap instead of a linear one.
        gaussian_sigma: parameter of the Gaussian.
        return_index: whether to return the indices of the boxes too.

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
    return {"gaussian_sigma": float_attr(gaussian_sigma)}
