"""Prior boxes of the cells of feature maps, and the heads that predict offsets from them."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from penstock._src.ir.variable import Variable
from penstock._src.layers.conv import conv2d
from penstock._src.layers.decorators import Attrs, layer, op_layer_with_results
from penstock._src.layers.helper import require_variables
from penstock._src.layers.reshaping import flatten, reshape, transpose
from penstock._src.layers.tensor import concat

if TYPE_CHECKING:
    from typing import Any


def _floats(value: Any) -> list[float]:
    return [float(one) for one in (value if isinstance(value, (list, tuple)) else [value])]


def _two(value: Any, what: str) -> list[float]:
    if not isinstance(value, (list, tuple)) or len(value) != 2:
        raise ValueError(f"{what} must be a list of two numbers, not {value!r}")
    return _floats(value)


def _steps(steps: Any) -> dict[str, float]:
    width, height = _two(steps, "steps")
    return {"step_w": width, "step_h": height}


@op_layer_with_results("prior_box", "Boxes Variances", attrs={"variances": "variance"}, stop_gradient=True)
def prior_box(
    input: Variable,
    image: Variable,
    min_sizes: list[float] | float,
    max_sizes: list[float] | None = None,
    aspect_ratios: list[float] | float = [1.0],
    variance: list[float] = [0.1, 0.1, 0.2, 0.2],
    flip: bool = False,
    clip: bool = False,
    steps: list[float] = [0.0, 0.0],
    offset: float = 0.5,
    name: str | None = None,
    min_max_aspect_ratios_order: bool = False,
) -> Attrs:
    """Computes prior boxes of the given sizes and aspect ratios around the centre of each cell of a feature map.

    Args:
        input: the feature map, shape [N, C, H, W]; only its shape counts.
        image: the images, shape [N, C, height, width]; only its shape counts.
        min_sizes: the sizes of the boxes, in pixels.
        max_sizes: one for each of `min_sizes`; adds a square whose size is the geometric mean of both.
        aspect_ratios: width / height of boxes; 1 is always included.
        flip: whether to use the reciprocals of the ratios too.
        steps: width and height of a cell in pixels; 0: the extent of the image divided by that of the feature map.
        min_max_aspect_ratios_order: whether the square from `max_sizes` comes second instead of last.

    Returns:
        tuple: (boxes, variances), Variables of shape [H, W, boxes per cell, 4], same type as `input`. Boxes are x1, y1,
        x2, y2, relative to the width and height of the image.

    Raises:
        ValueError: `steps` has the wrong number of values.
        penstock.ProgramError: a value of `max_sizes` is not above that of `min_sizes`.

    Example:
        feature = fluid.data('feature', [None, 8, 4, 4])
        image = fluid.data('image', [None, 3, 32, 32])
        boxes, variances = fluid.layers.prior_box(feature, image, [8.0], [16.0], [1.0, 2.0], flip=True)
        assert boxes.shape == variances.shape == (4, 4, 4, 4)

    Reference:
        Liu et al.: "SSD: single shot multibox detector", ECCV 2016.
    """
    given = {"min_sizes": _floats(min_sizes), "aspect_ratios": _floats(aspect_ratios), **_steps(steps)}
    if max_sizes and _floats(max_sizes)[0] > 0:
        given["max_sizes"] = _floats(max_sizes)
    return given


@op_layer_with_results(
    "density_prior_box", "Boxes Variances", attrs={"variances": "variance"}, stop_gradient=True, like=prior_box
)
def density_prior_box(
    input: Variable,
    image: Variable,
    densities: list[int] | None = None,
    fixed_sizes: list[float] | None = None,
    fixed_ratios: list[float] | None = None,
    variance: list[float] = [0.1, 0.1, 0.2, 0.2],
    clip: bool = False,
    steps: list[float] = [0.0, 0.0],
    offset: float = 0.5,
    flatten_to_2d: bool = False,
    name: str | None = None,
) -> Attrs:
    """Computes prior boxes that are spread evenly around the centre of each cell of a feature map.

    Args:
        densities: the number of boxes along each axis, for each of `fixed_sizes`.
        fixed_sizes: the sizes of the boxes, in pixels.
        fixed_ratios: width / height of boxes.
        flatten_to_2d: whether the results have shape [boxes, 4].

    Raises:
        TypeError: `input` or `image` is not a Variable, or `densities` or `fixed_sizes` is missing.
        ValueError: `densities` and `fixed_sizes` differ in length, or `steps` has the wrong number of values.

    Example:
        feature = fluid.data('feature', [None, 8, 4, 4])
        image = fluid.data('image', [None, 3, 32, 32])
        boxes, _ = fluid.layers.density_prior_box(feature, image, [2, 1], [8.0, 16.0], [1.0], flatten_to_2d=True)
        assert boxes.shape == (80, 4)
    """
    if densities is None or fixed_sizes is None:
        raise TypeError("density_prior_box: give densities and fixed_sizes, lists of one length")
    if len(densities) != len(fixed_sizes):
        raise ValueError(f"densities ({len(densities)}) and fixed_sizes ({len(fixed_sizes)}) must have the same length")
    return {
        **_steps(steps),
        "densities": [int(density) for density in densities],
        "fixed_sizes": _floats(fixed_sizes),
        "fixed_ratios": _floats(fixed_ratios),
    }


@op_layer_with_results("anchor_generator", "Anchors Variances", attrs={"variances": "variance"}, stop_gradient=True)
def anchor_generator(
    input: Variable,
    anchor_sizes: list[float] | float | None = None,
    aspect_ratios: list[float] | float | None = None,
    variance: list[float] = [0.1, 0.1, 0.2, 0.2],
    stride: list[float] | None = None,
    offset: float = 0.5,
    name: str | None = None,
) -> Attrs:
    """Computes anchors of the given sizes and aspect ratios around the centre of each cell of a feature map, in pixels.

    Args:
        input: the feature map, shape [N, C, H, W]; only its shape counts.
        anchor_sizes: the square roots of the boxes' areas.
        aspect_ratios: height / width of boxes.

    Returns:
        tuple: (anchors, variances), Variables of shape [H, W, anchors per cell, 4], same type as `input`. Anchors are
        x1, y1, x2, y2.

    Raises:
        TypeError: `input` is not a Variable, or `anchor_sizes` or `aspect_ratios` is missing.
        ValueError: `stride` has the wrong number of values.

    Example:
        feature = fluid.data('feature', [None, 8, 4, 4])
        anchors, _ = fluid.layers.anchor_generator(feature, [32, 64], [0.5, 1.0, 2.0], stride=[16.0, 16.0])
        assert anchors.shape == (4, 4, 6, 4)

    Reference:
        Ren, He, Girshick, Sun: "Faster R-CNN", NIPS 2015.
    """
    return {
        "anchor_sizes": _floats(anchor_sizes),
        "aspect_ratios": _floats(aspect_ratios),
        "stride": _two(stride, "stride"),
    }


@layer()
def multi_box_head(
    inputs: list[Variable],
    image: Variable,
    base_size: int,
    num_classes: int,
    aspect_ratios: list[list[float]],
    min_ratio: int | None = None,
    max_ratio: int | None = None,
    min_sizes: list[float] | None = None,
    max_sizes: list[float] | None = None,
    steps: list[float] | None = None,
    step_w: list[float] | None = None,
    step_h: list[float] | None = None,
    offset: float = 0.5,
    variance: list[float] = [0.1, 0.1, 0.2, 0.2],
    flip: bool = True,
    clip: bool = False,
    kernel_size: int = 1,
    pad: int = 0,
    stride: int = 1,
    name: str | None = None,
    min_max_aspect_ratios_order: bool = False,
) -> tuple[Variable, ...]:
    """Predicts offsets and class scores for the prior boxes of several feature maps, with convolutions on each map.

    Args:
        inputs: the feature maps, Variables of shape [N, C, H, W], float32 or float64.
        image: the images, shape [N, C, height, width]; only its shape counts.
        base_size: the size of the images; `min_ratio` and `max_ratio` are percentages of it.
        num_classes: the number of classes, including the background.
        aspect_ratios: the aspect ratios of the boxes of each feature map.
        min_ratio: the min size of the second map, if there are three or more maps; the sizes of the further maps are
            evenly spaced.
        max_ratio: the max size of the last map.
        min_sizes: the min sizes of each map, instead of the ratios.
        max_sizes: the max sizes of each map.
        steps: the size of a cell of each map in pixels, instead of `step_w` and `step_h`.
        step_w: the width of a cell of each map.
        step_h: the height of a cell of each map.
        flip: whether to use the reciprocals of the ratios too.
        kernel_size: filter size of the convolutions.
        pad: padding of the convolutions.
        stride: stride of the convolutions.
        name: has no effect.
        min_max_aspect_ratios_order: as in `prior_box`.

    Returns:
        tuple: (offsets, scores, boxes, variances), Variables of shapes [N, boxes, 4], [N, boxes, num_classes],
        [boxes, 4] and [boxes, 4], same type as `inputs`.

    Raises:
        ValueError: `inputs` is not a list, or another list does not have the length of `inputs`.

    Example:
        image = fluid.data('image', [None, 3, 32, 32])
        maps = [fluid.data('a', [None, 8, 4, 4]), fluid.data('b', [None, 8, 2, 2])]
        found = fluid.layers.multi_box_head(maps, image, 32, 3, [[2.0], [2.0]], min_sizes=[8.0, 16.0],
                                            max_sizes=[16.0, 24.0])
        assert [var.shape for var in found] == [(-1, -1, 4), (-1, -1, 3), (80, 4), (80, 4)]

    Reference:
        Liu et al.: "SSD: single shot multibox detector", ECCV 2016.
    """
    if not isinstance(inputs, (list, tuple)):
        raise ValueError("inputs must be a list of feature maps")
    require_variables("multi_box_head", image=image)
    if len(inputs) > 2 and min_sizes is None and max_sizes is None:
        min_sizes, max_sizes = _sizes_by_ratio(base_size, min_ratio, max_ratio, len(inputs))
    if steps is not None:
        step_w = step_h = steps
    lists: dict[str, Any] = {"min_sizes": min_sizes, "max_sizes": max_sizes}
    optional = {"aspect_ratios": aspect_ratios, "step_w": step_w, "step_h": step_h}
    lists.update((key, value) for key, value in optional.items() if value)
    for key, value in lists.items():
        if not isinstance(value, (list, tuple)) or len(value) != len(inputs):
            raise ValueError(f"{key} must have as many values as there are inputs ({len(inputs)}), not {value!r}")
    places: list[Variable] = []
    scores: list[Variable] = []
    boxes, variances = [], []
    smallest: Any = min_sizes
    largest: Any = max_sizes
    step_x: Any = step_w
    step_y: Any = step_h
    for i, input in enumerate(inputs):
        step = [step_x[i] if step_x else 0.0, step_y[i] if step_x else 0.0]
        ratios = aspect_ratios[i] if aspect_ratios else []
        box, var = prior_box(
            input,
            image,
            smallest[i],
            _floats(largest[i]),
            ratios,
            variance,
            flip,
            clip,
            step,
            offset,
            None,
            min_max_aspect_ratios_order,
        )
        boxes.append(box)
        variances.append(var)
        for width, made in ((4, places), (num_classes, scores)):
            found = conv2d(input, box.shape[2] * width, kernel_size, stride=stride, padding=pad)
            made.append(flatten(transpose(found, perm=[0, 2, 3, 1]), axis=1))
    if len(inputs) == 1:
        joined = places[0], scores[0], boxes[0], variances[0]
    else:
        boxes, variances = [flatten(one, axis=3) for one in boxes], [flatten(one, axis=3) for one in variances]
        box, var = concat(boxes), concat(variances)
        joined = (
            reshape(concat(places, axis=1), [0, -1, 4]),
            reshape(concat(scores, axis=1), [0, -1, num_classes]),
            box,
            var,
        )
    joined[2].stop_gradient = joined[3].stop_gradient = True
    return joined


def _sizes_by_ratio(base_size: int, min_ratio: Any, max_ratio: Any, maps: int) -> tuple[list[float], list[float]]:
    """Returns (min sizes, max sizes) of the maps: 10 % and 20 % for the first map, evenly spaced from min_ratio to
    max_ratio for the others."""
    step = int(math.floor((max_ratio - min_ratio) / (maps - 2)))
    ratios = range(min_ratio, max_ratio + 1, step)
    return (
        [base_size * 0.10] + [base_size * ratio / 100.0 for ratio in ratios],
        [base_size * 0.20] + [base_size * (ratio + step) / 100.0 for ratio in ratios],
    )
