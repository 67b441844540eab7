"""Convolution of images and volumes, its transpose, and deformable convolution."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from penstock._src.ir.variable import Variable
from penstock._src.layers.decorators import layer
from penstock._src.layers.helper import LayerHelper, describe, require_variables
from penstock._src.layers.spatial import IMAGES, VOLUMES, Spatial, require_bool, shortened
from penstock._src.layers.variants import variants
from penstock._src.parameters.initializer import Normal
from penstock._src.parameters.param_attr import ParamAttr

_DEPTHWISE = "use_cudnn: False with groups=C makes the op {}, as in Fluid."


def _require_filter(layer: str, param_attr: object) -> None:
    if param_attr is False:
        raise ValueError(f"{layer} needs its filter: param_attr must not be False")


def _channels(
    layer: str,
    kind: Spatial,
    input: Variable,
    groups: int | None,
    data_format: str,
    param_attr: object,
    use_cudnn: object,
) -> tuple[int, int]:
    """Checks arguments that all convolutions share, and returns (channels of the input, groups)."""
    _require_filter(layer, param_attr)
    require_variables(layer, input=input)
    require_bool(use_cudnn=use_cudnn)
    return kind.channels(input, groups, data_format)


def _filters(
    helper: LayerHelper, input: Variable, num_filters: int, channels: int, groups: int, size: list[int]
) -> Variable:
    """Creates the filters of a convolution, with initial values that keep the variance of the input."""
    shape = [num_filters, channels // groups, *size]
    std = (2.0 / (math.prod(size) * channels)) ** 0.5
    initializer = Normal(0.0, std, 0)
    made: Variable = helper.create_parameter(helper.param_attr, shape, input.dtype, default_initializer=initializer)
    return made


def _biased(helper: LayerHelper, before_bias: Variable, channel: int) -> Variable:
    return helper.append_activation(helper.append_bias_op(before_bias, dim_start=channel, dim_end=channel + 1))


@variants
def _convolution(
    input: Variable,
    num_filters: int,
    filter_size: int | Sequence[int],
    stride: int | Sequence[int] = 1,
    padding: int | Sequence[Any] | str = 0,
    dilation: int | Sequence[int] = 1,
    groups: int | None = None,
    param_attr: ParamAttr | None = None,
    bias_attr: ParamAttr | bool | None = None,
    use_cudnn: bool = True,
    act: str | None = None,
    name: str | None = None,
    data_format: str = "NCHW",
    *,
    _kind: Spatial = IMAGES,
) -> Variable:
    """Convolves {data} with learned filters, and adds a bias.

    Args:
        input (Variable): shape {shape}{types}.
        filter_size: {extents} of a filter.
        stride: distance between neighbouring positions of the filter along each axis.
        padding: zeros around the {one}: one number, [{per_axis}], [{per_side}], a pair for each of the {rank} axes,
            'SAME' or 'VALID'.
        dilation: distance between neighbouring elements of a window.
        param_attr: the filters, of shape [num_filters, C / groups, {per_axis}].
        {cudnn}
        data_format: {formats}.

    Returns:
        Variable: shape [N, num_filters, {per_axis}] in the order of `data_format`, same type as `input`.

    Raises:
        ValueError: `groups` does not divide C, or an argument has an invalid value.

    Example:
        {data} = fluid.data('{data}', [None, 3, {example}])
        features = fluid.layers.{layer}({data}, num_filters=8, filter_size=3, padding=1, act='relu')
        assert features.shape == (-1, 8, {example})
    """
    what = f"conv{_kind.axes}d"
    asked_groups = groups
    channels, groups = _channels(what, _kind, input, groups, data_format, param_attr, use_cudnn)
    # Fluid compares the argument, so one channel is depthwise only if groups=1 was passed.
    alone = channels == asked_groups and num_filters % channels == 0
    op_type = "depthwise_conv2d" if alone and _kind is IMAGES and not use_cudnn else what
    helper = LayerHelper(op_type, param_attr=param_attr, bias_attr=bias_attr, use_cudnn=use_cudnn, act=act, name=name)
    size = _kind.per_axis(filter_size, "filter_size")
    paddings, algorithm = _kind.paddings(padding, data_format)
    weight = _filters(helper, input, num_filters, channels, groups, size)
    before_bias = helper.create_variable_for_type_inference(input.dtype)
    attrs = {
        "strides": _kind.per_axis(stride, "stride"),
        "paddings": shortened(paddings),
        "dilations": _kind.per_axis(dilation, "dilation"),
        "groups": groups,
        "use_cudnn": use_cudnn,
        "use_mkldnn": False,
        "padding_algorithm": algorithm,
        "data_format": data_format,
    }
    if _kind is IMAGES:
        attrs["fuse_relu_before_depthwise_conv"] = False
    helper.append_op(op_type, {"Input": input, "Filter": weight}, {"Output": before_bias}, attrs)
    return _biased(helper, before_bias, _kind.channel_axis(data_format))


conv2d = layer("conv2d", typed="input")(
    _convolution("conv2d", types="", cudnn=_DEPTHWISE.format("depthwise_conv2d"), **IMAGES.variant)
)
conv3d = layer()(_convolution("conv3d", types=", with known C; float32 or float64", cudnn="", **VOLUMES.variant))


@variants
def _transposed_convolution(
    input: Variable,
    num_filters: int,
    output_size: int | Sequence[int] | None = None,
    filter_size: int | Sequence[int] | None = None,
    padding: int | Sequence[Any] | str = 0,
    stride: int | Sequence[int] = 1,
    dilation: int | Sequence[int] = 1,
    groups: int | None = None,
    param_attr: ParamAttr | None = None,
    bias_attr: ParamAttr | bool | None = None,
    use_cudnn: bool = True,
    act: str | None = None,
    name: str | None = None,
    data_format: str = "NCHW",
    *,
    _kind: Spatial = IMAGES,
) -> Variable:
    """Transposes a convolution of {data}: each element adds its product with the filter to the result.

    Args:
        input (Variable): shape {shape}, with known C; float32 or float64.
        output_size: {extents} of the result; without `filter_size`, the size of the filter is derived from it.
        filter_size: {extents} of a filter; one of the two sizes is required.
        padding: as in conv{axes}d, but the padding is cropped from the result.
        stride: distance between the positions of neighbouring elements in the result along each axis.
        dilation: distance between neighbouring elements of a filter in the result.
        groups: number of groups into which the channels are split; None: 1.
        param_attr: the filters, of shape [C, num_filters / groups, {per_axis}].
        {cudnn}
        data_format: {formats}.

    Raises:
        ValueError: neither `output_size` nor `filter_size` is given, or an argument has an invalid value.

    Example:
        features = fluid.data('features', [None, 8, {half}])
        {data} = fluid.layers.conv{axes}d_transpose(features, num_filters=3, filter_size=2, stride=2)
        assert {data}.shape == (-1, 3, {example})
    """
    what = f"conv{_kind.axes}d_transpose"
    asked_groups = groups
    channels, groups = _channels(what, _kind, input, groups, data_format, param_attr, use_cudnn)
    alone = channels == asked_groups and num_filters == channels
    op_type = "depthwise_conv2d_transpose" if alone and _kind is IMAGES and not use_cudnn else what
    helper = LayerHelper(op_type, param_attr=param_attr, bias_attr=bias_attr, use_cudnn=use_cudnn, act=act, name=name)
    paddings, algorithm = _kind.paddings(padding, data_format)
    attrs = {
        "output_size": [] if output_size is None else _kind.per_axis(output_size, "output_size"),
        "strides": _kind.per_axis(stride, "stride"),
        "paddings": shortened(paddings),
        "padding_algorithm": algorithm,
        "dilations": _kind.per_axis(dilation, "dilation"),
        "groups": groups,
        "use_cudnn": use_cudnn,
        "data_format": data_format.replace("D", ""),  # the op has one name for images and volumes
    }
    if filter_size is None:
        if not attrs["output_size"]:
            raise ValueError(f"{what} needs output_size or filter_size")
        filter_size = _filter_size(_kind.extents(input, data_format), paddings, attrs)
    shape = [channels, num_filters // groups, *_kind.per_axis(filter_size, "filter_size")]
    weight = helper.create_parameter(helper.param_attr, shape, input.dtype)
    before_bias = helper.create_variable_for_type_inference(input.dtype)
    helper.append_op(op_type, {"Input": input, "Filter": weight}, {"Output": before_bias}, attrs)
    return _biased(helper, before_bias, _kind.channel_axis(data_format))


def _filter_size(extents: list[int], paddings: list[int], attrs: dict[str, Any]) -> list[int]:
    """Returns the size of the filter whose transposed convolution produces attrs["output_size"] from the extents."""
    axes = zip(extents, attrs["output_size"], attrs["strides"], attrs["dilations"], paddings[::2], paddings[1::2])
    return [
        (out - (extent - 1) * stride + before + after - 1) // dilation + 1
        for extent, out, stride, dilation, before, after in axes
    ]


conv2d_transpose = layer(like=conv2d)(
    _transposed_convolution("conv2d_transpose", cudnn=_DEPTHWISE.format("depthwise_conv2d_transpose"), **IMAGES.variant)
)
conv3d_transpose = layer(like=conv3d)(_transposed_convolution("conv3d_transpose", cudnn="", **VOLUMES.variant))


@layer(like=conv2d)
def deformable_conv(
    input: Variable,
    offset: Variable,
    mask: Variable | None,
    num_filters: int,
    filter_size: int | list[int],
    stride: int | list[int] = 1,
    padding: int | list[int] = 0,
    dilation: int | list[int] = 1,
    groups: int | None = None,
    deformable_groups: int | None = None,
    im2col_step: int | None = None,
    param_attr: ParamAttr | None = None,
    bias_attr: ParamAttr | bool | None = None,
    modulated: bool = True,
    name: str | None = None,
) -> Variable:
    """Convolves images with learned filters whose windows read from shifted positions, and adds a bias.

    Args:
        input (Variable): shape [N, C, H, W] with known C, float32 or float64.
        offset (Variable): the offsets from the positions that conv2d reads, y before x, shape [N, 2 * deformable_groups
            * filter height * filter width, height, width], same type as `input`.
        mask (Variable | None): factors of the elements, shape [N, deformable_groups * filter height * filter width,
            height, width], same type as `input`; None with modulated=False.
        padding: zeros around the image: one number, or [height, width].
        deformable_groups: the number of groups of channels with their own offsets; None: 1.
        im2col_step: has no effect.
        modulated: whether there is a mask.

    Returns:
        Variable: shape [N, num_filters, height, width], same type as `input`.

    Raises:
        TypeError: `input` or `offset` is not a Variable, or `mask` is not a Variable with modulated=True.
        ValueError: `groups` does not divide the number of channels, or an argument has an invalid value.

    Example:
        image = fluid.data('image', [None, 4, 8, 8])
        offset = fluid.data('offset', [None, 18, 8, 8])
        mask = fluid.data('mask', [None, 9, 8, 8])
        out = fluid.layers.deformable_conv(image, offset, mask, num_filters=6, filter_size=3, padding=1)
        assert out.shape == (-1, 6, 8, 8)

    Reference:
        Zhu, Hu, Lin, Dai: "Deformable ConvNets v2: more deformable, better results", CVPR 2019.
    """
    require_variables("deformable_conv", input=input, offset=offset)
    _require_filter("deformable_conv", param_attr)
    if modulated and not isinstance(mask, Variable):
        raise TypeError(f"mask must be a Variable, not {describe(mask)}, unless modulated is False")
    channels = input.shape[1]
    if groups is not None and channels % groups != 0:
        raise ValueError(f"the number of input channels ({channels}) must be divisible by groups ({groups})")
    helper = LayerHelper("deformable_conv", input=input, param_attr=param_attr, bias_attr=bias_attr, name=name)
    size = IMAGES.per_axis(filter_size, "filter_size")
    weight = _filters(helper, input, num_filters, channels, groups or 1, size)
    before_bias = helper.create_variable_for_type_inference(input.dtype)
    inputs: dict[str, Any] = {"Input": input, "Filter": weight, "Offset": offset}
    if modulated:
        inputs["Mask"] = mask
    attrs: dict[str, Any] = {
        "strides": IMAGES.per_axis(stride, "stride"),
        "paddings": IMAGES.per_axis(padding, "padding"),
        "dilations": IMAGES.per_axis(dilation, "dilation"),
    }
    given = {"groups": groups, "deformable_groups": deformable_groups, "im2col_step": im2col_step}
    attrs.update((key, value) for key, value in given.items() if value is not None)
    helper.append_op("deformable_conv" if modulated else "deformable_conv_v1", inputs, {"Output": before_bias}, attrs)
    return helper.append_bias_op(before_bias, dim_start=1, dim_end=2)
