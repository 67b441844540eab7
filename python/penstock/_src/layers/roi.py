"""Pooling of regions of images."""

from __future__ import annotations

from penstock._src.ir.variable import Variable
from penstock._src.layers.decorators import Attrs, op_layer, op_layer_with_results
from penstock._src.layers.helper import require_kind
from penstock._src.layers.spatial import IMAGES


@op_layer("roi_pool", inputs={"X": "input"}, outputs="Out Argmax")
def roi_pool(
    input: Variable,
    rois: Variable,
    pooled_height: int = 1,
    pooled_width: int = 1,
    spatial_scale: float = 1.0,
    rois_lod: Variable | None = None,
) -> Attrs:
    """Takes the maximum of each bin of regions of images (RoI pooling).

    Args:
        input: shape [N, C, H, W].
        rois_lod: the offsets of each image's regions, used instead of the sequences, shape [N + 1], int64.

    Returns:
        Variable: shape [regions, C, pooled_height, pooled_width], same type as `input`.

    Example:
        image = fluid.data('image', [None, 3, 8, 8])
        rois = fluid.data('rois', [None, 4], lod_level=1)
        assert fluid.layers.roi_pool(image, rois, 2, 2).shape == (-1, 3, 2, 2)

    Reference:
        Girshick: "Fast R-CNN", ICCV 2015.
    """


@op_layer("roi_align", inputs={"X": "input"}, like=roi_pool)
def roi_align(
    input: Variable,
    rois: Variable,
    pooled_height: int = 1,
    pooled_width: int = 1,
    spatial_scale: float = 1.0,
    sampling_ratio: int = -1,
    name: str | None = None,
    rois_lod: Variable | None = None,
) -> Attrs:
    """Averages bilinearly interpolated points in each bin of regions of images (RoI align).

    Args:
        sampling_ratio: the number of points of a bin along each axis; 0 or less: the extent of the bin, rounded up.

    Example:
        image = fluid.data('image', [None, 3, 8, 8])
        rois = fluid.data('rois', [None, 4], lod_level=1)
        assert fluid.layers.roi_align(image, rois, 2, 2, sampling_ratio=2).shape == (-1, 3, 2, 2)

    Reference:
        He, Gkioxari, Dollar, Girshick: "Mask R-CNN", ICCV 2017.
    """


@op_layer_with_results(
    "roi_perspective_transform",
    "Out Mask TransformMatrix",
    fluid_accepts={"input rois": "float32 float64"},
    inputs={"X": "input"},
    outputs="Out Mask TransformMatrix Out2InIdx Out2InWeights",
)
def roi_perspective_transform(
    input: Variable,
    rois: Variable,
    transformed_height: int,
    transformed_width: int,
    spatial_scale: float = 1.0,
    name: str | None = None,
) -> Attrs:
    """Rectifies quadrilaterals of images by a perspective transform.

    Args:
        input: shape [N, C, H, W].
        rois: shape [regions, 8]: x1, y1, ..., x4, y4, corners clockwise from the top left, in a sequence for each
            image; same type as `input`.
        transformed_height: number of rows of a region in the result.
        transformed_width: number of columns of a region in the result; a region with a smaller ratio of width to height
            fills only the first columns.

    Returns:
        tuple: (out, mask, matrix). `out` has shape [regions, C, transformed_height, transformed_width] and the type of
        `input`; `mask`, shape [regions, 1, transformed_height, transformed_width], int32, is 1 where `out` shows the
        image; `matrix`, shape [regions, 9], maps positions of `out` to positions of the image.

    Raises:
        TypeError: `input` or `rois` is not a Variable, or has an unsupported element type, or a number has the wrong
            type.

    Example:
        image = fluid.data('image', [None, 3, 8, 8])
        rois = fluid.data('rois', [None, 8], lod_level=1)
        out, mask, matrix = fluid.layers.roi_perspective_transform(image, rois, 4, 6)
        assert (out.shape, mask.shape, matrix.shape) == ((-1, 3, 4, 6), (-1, 1, 4, 6), (-1, 9))

    Reference:
        Sun et al.: "TextNet: irregular text reading from images with an end-to-end trainable network", ACCV 2018.
    """
    require_kind(
        "roi_perspective_transform", int, transformed_height=transformed_height, transformed_width=transformed_width
    )
    require_kind("roi_perspective_transform", float, spatial_scale=spatial_scale)
    return None


@op_layer("psroi_pool", inputs={"X": "input"})
def psroi_pool(
    input: Variable,
    rois: Variable,
    output_channels: int,
    spatial_scale: float,
    pooled_height: int,
    pooled_width: int,
    name: str | None = None,
) -> Attrs:
    """Averages each bin of regions of images; each bin reads its own channels (position-sensitive RoI pooling).

    Args:
        input: shape [N, output_channels * pooled_height * pooled_width, H, W].
        output_channels: number of channels of the result.

    Returns:
        Variable: shape [regions, output_channels, pooled_height, pooled_width], same type as `input`.

    Raises:
        TypeError: an argument has the wrong type.
        penstock.ProgramError: the number of channels of `input` is not the required product.

    Example:
        image = fluid.data('image', [None, 8, 8, 8])
        rois = fluid.data('rois', [None, 4], lod_level=1)
        assert fluid.layers.psroi_pool(image, rois, 2, 1.0, 2, 2).shape == (-1, 2, 2, 2)

    Reference:
        Dai, Li, He, Sun: "R-FCN: object detection via region-based fully convolutional networks", NIPS 2016.
    """
    require_kind(
        "psroi_pool", int, output_channels=output_channels, pooled_height=pooled_height, pooled_width=pooled_width
    )
    require_kind("psroi_pool", float, spatial_scale=spatial_scale)
    return None


@op_layer("prroi_pool", inputs={"X": "input", "BatchRoINums": "batch_roi_nums"}, like=roi_pool)
def prroi_pool(
    input: Variable,
    rois: Variable,
    spatial_scale: float = 1.0,
    pooled_height: int = 1,
    pooled_width: int = 1,
    batch_roi_nums: Variable | None = None,
    name: str | None = None,
) -> Attrs:
    """Integrates over each bin of regions of images and divides by the area of the bin (precise RoI pooling).

    Args:
        rois: shape [regions, 4]: x1, y1, x2, y2, in a sequence for each image; same type as `input`. Gradients flow to
            it.
        batch_roi_nums: shape [N], int64: the number of regions of each image, instead of the sequences.

    Raises:
        TypeError: `input` or `rois` is not a Variable, or an argument has the wrong type.

    Example:
        image = fluid.data('image', [None, 3, 8, 8])
        rois = fluid.data('rois', [None, 4], lod_level=1)
        assert fluid.layers.prroi_pool(image, rois, 1.0, 2, 2).shape == (-1, 3, 2, 2)

    Reference:
        Jiang, Luo, Mao, Xiao, Jiang: "Acquisition of localization confidence for accurate object detection", ECCV 2018.
    """
    require_kind("prroi_pool", int, pooled_height=pooled_height, pooled_width=pooled_width)
    require_kind("prroi_pool", float, spatial_scale=spatial_scale)
    return None


@op_layer("deformable_psroi_pooling", output="Output", outputs="Output TopCount", prefix="deformable_psroi_pooling")
def deformable_roi_pooling(
    input: Variable,
    rois: Variable,
    trans: Variable,
    no_trans: bool = False,
    spatial_scale: float = 1.0,
    group_size: list[int] = [1, 1],
    pooled_height: int = 1,
    pooled_width: int = 1,
    part_size: list[int] | None = None,
    sample_per_part: int = 1,
    trans_std: float = 0.1,
    position_sensitive: bool = False,
    name: str | None = None,
) -> Attrs:
    """Averages over the bins of regions of images, where each bin is shifted by its own offset.

    Args:
        input: shape [N, C, H, W].
        trans: the offsets, x before y, shape [regions, 2 * classes, *part_size], same type as `input`.
        no_trans: whether to ignore `trans` and not to shift the bins.
        group_size: number of parts of a region along height and width that have their own channels.
        part_size: number of parts of a region along height and width that have their own offsets; None: each bin has
            its own.
        trans_std: factor of the offsets.
        position_sensitive: whether each bin has its own channels.

    Returns:
        Variable: shape [regions, channels, pooled_height, pooled_width] with C channels, or with
        C / pooled_height / pooled_width channels if `position_sensitive`; same type as `input`.

    Raises:
        TypeError: `input`, `rois` or `trans` is not a Variable, or `group_size` or `part_size` is not a list.
        ValueError: `group_size` or `part_size` has the wrong number of values.

    Example:
        image = fluid.data('image', [None, 4, 8, 8])
        rois = fluid.data('rois', [None, 4], lod_level=1)
        trans = fluid.data('trans', [None, 2, 2, 2])
        out = fluid.layers.deformable_roi_pooling(image, rois, trans, pooled_height=2, pooled_width=2)
        assert out.shape == (-1, 4, 2, 2)

    Reference:
        Dai et al.: "Deformable convolutional networks", ICCV 2017.
    """
    for key, given in (("group_size", group_size), ("part_size", part_size)):
        if given is not None and not isinstance(given, (list, tuple)):
            raise TypeError(f"deformable_roi_pooling: {key} must be a list of two numbers, not {given!r}")
    channels = input.shape[1]
    return {
        "output_dim": channels // pooled_height // pooled_width if position_sensitive else channels,
        "group_size": IMAGES.per_axis(group_size, "group_size"),
        "part_size": IMAGES.per_axis([pooled_height, pooled_width] if part_size is None else part_size, "part_size"),
    }
