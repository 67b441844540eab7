"""Layers for boxes: encoding and decoding, clipping, overlap, the output of a YOLO head."""

from __future__ import annotations

from penstock._src.ir.variable import Variable
from penstock._src.layers.decorators import Attrs, op_layer, op_layer_with_results
from penstock._src.layers.helper import describe, require_kind


@op_layer("iou_similarity")
def iou_similarity(x: Variable, y: Variable, box_normalized: bool = True, name: str | None = None) -> Attrs:
    """Computes the overlap (intersection over union) of each pair of boxes.

    Args:
        x: shape [N, 4]: x1, y1, x2, y2.
        y: shape [M, 4], same type as `x`.
        box_normalized: False for boxes in pixels, whose width and height are the difference of their corners plus 1.

    Returns:
        Variable: shape [N, M], same type and sequences as `x`.

    Example:
        x = fluid.data('x', [None, 4], lod_level=1)
        y = fluid.data('y', [7, 4])
        assert fluid.layers.iou_similarity(x, y).shape == (-1, 7)
    """


@op_layer("box_coder", inputs={"PriorBoxVar": "prior_box_var"}, attrs={"variance": "prior_box_var"}, output="OutputBox")
def box_coder(
    prior_box: Variable,
    prior_box_var: Variable | list[float],
    target_box: Variable,
    code_type: str = "encode_center_size",
    box_normalized: bool = True,
    name: str | None = None,
    axis: int = 0,
) -> Attrs:
    """Encodes boxes as offsets from prior boxes, or decodes such offsets to boxes.

    Args:
        prior_box: shape [M, 4]: x1, y1, x2, y2.
        prior_box_var: variances, by which encoded offsets are divided: shape [M, 4], or 4 numbers.
        target_box: shape [N, 4] to encode; [N, M, 4], or [M, N, 4] with axis=1, to decode.
        code_type: 'encode_center_size' or 'decode_center_size'.
        box_normalized: False for boxes in pixels, whose width and height are the difference of their corners plus 1.
        axis: used for decoding: with 0, axis 1 of `target_box` runs over the priors; with 1, axis 0 does.

    Returns:
        Variable: the encoded boxes, shape [N, M, 4], or the decoded boxes, same shape as `target_box`; same type as
        `prior_box`.

    Raises:
        TypeError: `prior_box` or `target_box` is not a Variable, or `prior_box_var` is neither a Variable nor a list.
        penstock.ProgramError: `code_type` or `axis` has another value, or the shapes are incompatible.

    Example:
        prior = fluid.data('prior', [7, 4])
        boxes = fluid.data('boxes', [None, 4])
        distances = fluid.layers.box_coder(prior, [0.1, 0.1, 0.2, 0.2], boxes)
        assert distances.shape == (-1, 7, 4)
    """
    if not isinstance(prior_box_var, (Variable, list)):
        raise TypeError(f"prior_box_var must be a Variable or a list, not {describe(prior_box_var)}")
    return None


@op_layer("box_clip", inputs={"ImInfo": "im_info"}, output="Output")
def box_clip(input: Variable, im_info: Variable, name: str | None = None) -> Attrs:
    """Clips boxes to their images.

    Args:
        input: shape [boxes, 4], in a sequence for each image.
        im_info: shape [N, 3]: height, width and scale of each image; boxes are clipped to the height and width divided
            by the scale.

    Returns:
        Variable: same shape, type and sequences as `input`.

    Example:
        boxes = fluid.data('boxes', [None, 4], lod_level=1)
        info = fluid.data('info', [None, 3])
        assert fluid.layers.box_clip(boxes, info).shape == (-1, 4)
    """


@op_layer("polygon_box_transform", output="Output")
def polygon_box_transform(input: Variable, name: str | None = None) -> Attrs:
    """Converts offsets to positions of corners: 4 * x - offset on even channels, 4 * y - offset on odd channels.

    Args:
        input: shape [N, C, H, W] with an even C.

    Example:
        x = fluid.data('x', [None, 8, 4, 4])
        assert fluid.layers.polygon_box_transform(x).shape == (-1, 8, 4, 4)
    """


@op_layer_with_results("box_decoder_and_assign", "DecodeBox OutputAssignBox")
def box_decoder_and_assign(
    prior_box: Variable,
    prior_box_var: Variable,
    target_box: Variable,
    box_score: Variable,
    box_clip: float,
    name: str | None = None,
) -> Attrs:
    """Decodes the boxes of all classes, and selects the box of the class with the highest score.

    Args:
        prior_box: shape [N, 4]: x1, y1, x2, y2 in pixels.
        prior_box_var: the variances, by which offsets are multiplied, shape [4].
        target_box: the offsets, shape [N, 4 * classes], same type as `prior_box`.
        box_score: the scores, shape [N, classes], same type as `prior_box`; class 0 is the background.
        box_clip: upper bound of the encoded width and height before the exponential is taken.

    Returns:
        tuple: (all boxes, best boxes): Variables of shapes [N, 4 * classes] and [N, 4], same type as `prior_box`.

    Example:
        prior, var = fluid.data('prior', [None, 4]), fluid.data('var', [4])
        target, score = fluid.data('target', [None, 12]), fluid.data('score', [None, 3])
        boxes, best = fluid.layers.box_decoder_and_assign(prior, var, target, score, 4.135)
        assert (boxes.shape, best.shape) == ((-1, 12), (-1, 4))
    """


@op_layer_with_results("yolo_box", "Boxes Scores")
def yolo_box(
    x: Variable,
    img_size: Variable,
    anchors: list[int] | tuple[int, ...],
    class_num: int,
    conf_thresh: float,
    downsample_ratio: int,
    clip_bbox: bool = True,
    name: str | None = None,
    scale_x_y: float = 1.0,
) -> Attrs:
    """Computes boxes and scores from the output of a YOLOv3 head.

    Args:
        x: shape [N, anchors * (5 + class_num), H, W].
        img_size: shape [N, 2], int32: height and width of each image.
        anchors: width and height of each anchor, one after the other.
        conf_thresh: boxes with a lower confidence are set to 0.
        downsample_ratio: width and height of a cell in pixels of the network's input.
        clip_bbox: whether to clip boxes to their image.
        scale_x_y: scale of the centre's offset in its cell.

    Returns:
        tuple: (boxes, scores): Variables of shapes [N, boxes, 4], in pixels, and [N, boxes, class_num]; same type as
        `x`.

    Raises:
        TypeError: `x` or `img_size` is not a Variable, or an argument has the wrong type.

    Example:
        x = fluid.data('x', [None, 14, 4, 4])
        size = fluid.data('size', [None, 2], 'int32')
        boxes, scores = fluid.layers.yolo_box(x, size, [10, 13, 16, 30], 2, 0.01, 32)
        assert (boxes.shape, scores.shape) == ((-1, 32, 4), (-1, 32, 2))

    Reference:
        Redmon, Farhadi: "YOLOv3: an incremental improvement", 2018.
    """
    require_kind("yolo_box", list, anchors=anchors)
    require_kind("yolo_box", int, class_num=class_num)
    require_kind("yolo_box", float, conf_thresh=conf_thresh)
    return {"anchors": list(anchors)}
