"""Proposals on the levels of a feature pyramid."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock._src.layers.decorators import layer
from penstock._src.layers.helper import LayerHelper

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from penstock._src.ir.variable import Variable


@layer()
def distribute_fpn_proposals(
    fpn_rois: Variable, min_level: int, max_level: int, refer_level: int, refer_scale: int, name: str | None = None
) -> tuple[Any, ...]:
    """Assigns regions to the levels of a feature pyramid by their sizes.

    Args:
        fpn_rois (Variable): shape [regions, 4], in a sequence for each image; float32 or float64.
        min_level (int): the finest level.
        max_level (int): the coarsest level.
        refer_level (int): the level of regions of size `refer_scale`.
        refer_scale (int): the square root of the area of such regions.

    Returns:
        tuple: (levels, restore index): a list of Variables of shape [regions, 4], one for each level, same type as
        `fpn_rois`, and a Variable of shape [regions, 1], int32: the position of each region in the concatenated levels.

    Example:
        rois = fluid.data('rois', [None, 4], lod_level=1)
        levels, restore = fluid.layers.distribute_fpn_proposals(rois, 2, 5, 4, 224)
        assert len(levels) == 4 and restore.shape == (-1, 1)

    Reference:
        Lin et al.: "Feature pyramid networks for object detection", CVPR 2017.
    """
    helper = LayerHelper("distribute_fpn_proposals", name=name).takes(fpn_rois=fpn_rois)
    levels = [helper.create_variable_for_type_inference(fpn_rois.dtype) for _ in range(min_level, max_level + 1)]
    restore = helper.create_variable_for_type_inference("int32")
    helper.append_op(
        "distribute_fpn_proposals",
        {"FpnRois": fpn_rois},
        {"MultiFpnRois": levels, "RestoreIndex": restore},
        {"min_level": min_level, "max_level": max_level, "refer_level": refer_level, "refer_scale": refer_scale},
    )
    return levels, restore


@layer()
def collect_fpn_proposals(
    multi_rois: Sequence[Any],
    multi_scores: Sequence[Any],
    min_level: int,
    max_level: int,
    post_nms_top_n: int,
    name: str | None = None,
) -> Variable:
    """Selects the regions with the highest scores from all levels of a feature pyramid.

    Args:
        multi_rois (list): Variables of shape [regions, 4], one for each level, in a sequence for each image; float32 or
            float64.
        multi_scores (list): their scores, Variables of shape [regions, 1], in the same sequences and of the same type.
        min_level (int): the finest level.
        max_level (int): the coarsest level.
        post_nms_top_n (int): the maximum number of regions that are kept for all images together.

    Returns:
        Variable: shape [regions, 4], in a sequence for each image, the best first; same type as the regions.

    Raises:
        TypeError: an element of `multi_rois` is not a Variable.
        ValueError: `multi_rois` is empty.

    Example:
        rois = [fluid.data('rois%d' % i, [None, 4], lod_level=1) for i in range(2)]
        scores = [fluid.data('scores%d' % i, [None, 1], lod_level=1) for i in range(2)]
        assert fluid.layers.collect_fpn_proposals(rois, scores, 2, 3, 100).shape == (-1, 4)
    """
    helper = LayerHelper("collect_fpn_proposals", name=name, input=multi_rois)
    count = max_level - min_level + 1
    out = helper.create_variable_for_type_inference(helper.input_dtype())
    out.stop_gradient = True
    helper.append_op(
        "collect_fpn_proposals",
        {"MultiLevelRois": list(multi_rois[:count]), "MultiLevelScores": list(multi_scores[:count])},
        {"FpnRois": out},
        {"post_nms_topN": post_nms_top_n},
    )
    return out
