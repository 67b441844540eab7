"""Convolution of images, its transpose, and pooling."""

from penstock._src.ir.argument_types import ArgumentError
from penstock._src.ir.variable import Variable
from penstock._src.layers.decorators import layer
from penstock._src.layers.helper import LayerHelper, require_variables
from penstock._src.parameters.initializer import Normal

__all__ = ["conv2d", "conv2d_transpose", "pool2d"]


def _pair(value, what):
    if isinstance(value, int):
        return [value, value]
    if not isinstance(value, (list, tuple)) or len(value) != 2:
        raise ValueError(f"{what} takes one number or two, not {value!r}")
    return list(value)


def _require_format(data_format):
    if data_format not in ("NCHW", "NHWC"):
        raise ValueError(f"data_format must be NCHW or NHWC, not {data_format!r}")


def _require_bool(**flags):
    for name, value in flags.items():
        if not isinstance(value, bool):
            raise ArgumentError(f"{name} must be True or False, not {value!r}")


def _channels(input, groups, data_format):
    """Returns (channels of the input, groups). The groups must divide the channels; None means one group."""
    _require_format(data_format)
    if len(input.shape) != 4:
        raise ValueError(f"the input must be images of 4 axes, but its shape is {input.shape}")
    channels = input.shape[1] if data_format == "NCHW" else input.shape[3]
    if channels < 0:
        raise ValueError(f"the number of channels of the input must be known, but its shape is {input.shape}")
    groups = 1 if groups is None else groups
    if groups < 1 or channels % groups != 0:
        raise ValueError(f"the number of input channels ({channels}) must be divisible by groups ({groups})")
    return channels, groups


def _paddings(padding, data_format):
    """Returns (paddings, algorithm) for 'SAME', 'VALID', a number, [h, w], [top, bottom, left, right], or a pair per
    axis."""
    if isinstance(padding, str):
        algorithm = padding.upper()
        if algorithm not in ("SAME", "VALID"):
            raise ValueError(f"padding must be SAME, VALID or numbers, not {padding!r}")
        return [0, 0], algorithm
    if isinstance(padding, (list, tuple)) and len(padding) == 4:
        if isinstance(padding[0], (list, tuple)):
            pairs, others = (padding[1:3], padding[::3]) if data_format == "NHWC" else (padding[2:], padding[:2])
            if any(extent for pair in others for extent in pair):
                raise ValueError(f"padding {padding}: only the axes of the image are padded")
            padding = [extent for pair in pairs for extent in pair]
        top, bottom, left, right = padding
        if (top, left) == (bottom, right):
            return [top, left], "EXPLICIT"
        return [top, bottom, left, right], "EXPLICIT"
    return _pair(padding, "padding"), "EXPLICIT"


@layer("conv2d", typed="input")
def conv2d(
    input,
    num_filters,
    filter_size,
    stride=1,
    padding=0,
    dilation=1,
    groups=None,
    param_attr=None,
    bias_attr=None,
    use_cudnn=True,
    act=None,
    name=None,
    data_format="NCHW",
):
    """Convolves images with learned filters, and adds a bias.

    Args:
        input (Variable): shape [N, C, H, W], or [N, H, W, C] for NHWC.
        filter_size (int | list[int]): height and width of a filter.
        stride (int | list[int]): distance between neighbouring positions of the filter, down and across.
        padding (int | list | str): rows and columns of zeros around the image: one number, [height, width], [top,
            bottom, left, right], a pair for each of the four axes, 'SAME' or 'VALID'.
        dilation (int | list[int]): distance between neighbouring elements of a window.
        param_attr (ParamAttr | None): the filters, of shape [num_filters, C / groups, height, width].
        use_cudnn (bool): False with groups=C makes the op depthwise_conv2d, as in Fluid.

    Returns:
        Variable: shape [N, num_filters, out_height, out_width] in the order of `data_format`, same type as `input`.

    Raises:
        ValueError: `groups` does not divide C, or an argument has an invalid value.

    Example:
        images = fluid.data('images', [None, 3, 32, 32])
        features = fluid.layers.conv2d(images, num_filters=8, filter_size=3, padding=1, act='relu')
        assert features.shape == (-1, 8, 32, 32)
    """
    require_variables("conv2d", input=input)
    _require_bool(use_cudnn=use_cudnn)
    asked_groups = groups
    channels, groups = _channels(input, groups, data_format)
    # Fluid compares the argument, so one channel is depthwise only if groups=1 was passed.
    depthwise = channels == asked_groups and num_filters % channels == 0 and not use_cudnn
    op_type = "depthwise_conv2d" if depthwise else "conv2d"
    helper = LayerHelper(op_type, param_attr=param_attr, bias_attr=bias_attr, use_cudnn=use_cudnn, act=act, name=name)
    filter_size = _pair(filter_size, "filter_size")
    paddings, algorithm = _paddings(padding, data_format)
    std = (2.0 / (filter_size[0] * filter_size[1] * channels)) ** 0.5
    weight = helper.create_parameter(
        helper.param_attr,
        [num_filters, channels // groups] + filter_size,
        input.dtype,
        default_initializer=Normal(0.0, std, 0),
    )
    before_bias = helper.create_variable_for_type_inference(input.dtype)
    helper.append_op(
        op_type,
        {"Input": input, "Filter": weight},
        {"Output": before_bias},
        {
            "strides": _pair(stride, "stride"),
            "paddings": paddings,
            "dilations": _pair(dilation, "dilation"),
            "groups": groups,
            "use_cudnn": use_cudnn,
            "use_mkldnn": False,
            "fuse_relu_before_depthwise_conv": False,
            "padding_algorithm": algorithm,
            "data_format": data_format,
        },
    )
    channel = 1 if data_format == "NCHW" else 3
    return helper.append_activation(helper.append_bias_op(before_bias, dim_start=channel, dim_end=channel + 1))


@layer()
def pool2d(
    input,
    pool_size=-1,
    pool_type="max",
    pool_stride=1,
    pool_padding=0,
    global_pooling=False,
    use_cudnn=True,
    ceil_mode=False,
    name=None,
    exclusive=True,
    data_format="NCHW",
):
    """Takes the maximum or the mean of a window that slides over each channel.

    Args:
        input (Variable): shape [N, C, H, W], or [N, H, W, C] for NHWC; float32 or float64.
        pool_size (int | list[int]): height and width of the window; not needed with `global_pooling`.
        pool_stride (int | list[int]): distance between neighbouring windows.
        pool_padding (int | list | str): as `padding` of conv2d.
        global_pooling (bool): the window is the whole image.
        ceil_mode (bool): round the number of windows up, so that the last window may extend beyond the image.
        exclusive (bool): compute a mean over the elements of the image only, without the padding.

    Returns:
        Variable: shape [N, C, out_height, out_width] in the order of `data_format`, same type as `input`.

    Raises:
        ValueError: an argument has an invalid value.

    Example:
        images = fluid.data('images', [None, 3, 32, 32])
        assert fluid.layers.pool2d(images, pool_size=2, pool_stride=2).shape == (-1, 3, 16, 16)
    """
    if pool_type not in ("max", "avg"):
        raise ValueError(f"pool_type must be max or avg, not {pool_type!r}")
    if not global_pooling and pool_size == -1:
        raise ValueError("pool_size must be given unless global_pooling is True")
    _require_bool(use_cudnn=use_cudnn)
    _require_format(data_format)
    paddings, algorithm = _paddings(pool_padding, data_format)
    if algorithm == "VALID" and ceil_mode:
        raise ValueError("ceil_mode contradicts padding 'VALID'; give one of them")
    helper = LayerHelper("pool2d", name=name).takes(input=input)
    out = helper.create_variable_for_type_inference(input.dtype)
    helper.append_op(
        "pool2d",
        {"X": input},
        {"Out": out},
        {
            "pooling_type": pool_type,
            "ksize": _pair(pool_size, "pool_size"),
            "global_pooling": global_pooling,
            "strides": _pair(pool_stride, "pool_stride"),
            "paddings": paddings,
            "padding_algorithm": algorithm,
            "use_cudnn": use_cudnn,
            "ceil_mode": ceil_mode,
            "use_mkldnn": False,
            "exclusive": exclusive,
            "data_format": data_format,
        },
    )
    return out


@layer(like=conv2d)
def conv2d_transpose(
    input,
    num_filters,
    output_size=None,
    filter_size=None,
    padding=0,
    stride=1,
    dilation=1,
    groups=None,
    param_attr=None,
    bias_attr=None,
    use_cudnn=True,
    act=None,
    name=None,
    data_format="NCHW",
):
    """Computes the transpose of a convolution: each element adds its product with the filter to the result.

    Args:
        input (Variable): shape [N, C, H, W], or [N, H, W, C] for NHWC; float32 or float64.
        output_size (int | list[int] | None): height and width of the result; without `filter_size`, the size of the
            filter is derived from it.
        filter_size (int | list[int] | None): height and width of a filter; one of the two sizes is required.
        padding (int | list | str): as in conv2d, but the rows and columns are cropped from the result.
        stride (int | list[int]): distance between the positions of neighbouring elements in the result.
        dilation (int | list[int]): distance between neighbouring elements of a filter in the result.
        groups (int | None): number of groups into which the channels are split; None: 1.
        param_attr (ParamAttr | None): the filters, of shape [C, num_filters / groups, height, width].
        use_cudnn (bool): False with groups=C makes the op depthwise_conv2d_transpose, as in Fluid.

    Raises:
        ValueError: neither `output_size` nor `filter_size` is given, or an argument has an invalid value.

    Example:
        features = fluid.data('features', [None, 8, 16, 16])
        images = fluid.layers.conv2d_transpose(features, num_filters=3, filter_size=2, stride=2)
        assert images.shape == (-1, 3, 32, 32)
    """
    if not param_attr and param_attr is not None:
        raise ValueError("conv2d_transpose needs its filter: param_attr must not be False")
    require_variables("conv2d_transpose", input=input)
    _require_bool(use_cudnn=use_cudnn)
    asked_groups = groups
    channels, groups = _channels(input, groups, data_format)
    depthwise = channels == asked_groups and num_filters == channels and not use_cudnn
    op_type = "depthwise_conv2d_transpose" if depthwise else "conv2d_transpose"
    helper = LayerHelper(
        op_type, param_attr=param_attr, bias_attr=bias_attr, use_cudnn=use_cudnn, act=act, name=name
    ).takes(input=input)
    paddings, algorithm = _paddings(padding, data_format)
    stride, dilation = _pair(stride, "stride"), _pair(dilation, "dilation")
    output_size = [] if output_size is None else _pair(output_size, "output_size")
    if filter_size is None:
        filter_size = _filter_size(input, output_size, paddings, stride, dilation, data_format)
    filter_size = _pair(filter_size, "filter_size")
    weight = helper.create_parameter(helper.param_attr, [channels, num_filters // groups] + filter_size, input.dtype)
    before_bias = helper.create_variable_for_type_inference(input.dtype)
    helper.append_op(
        op_type,
        {"Input": input, "Filter": weight},
        {"Output": before_bias},
        {
            "output_size": output_size,
            "strides": stride,
            "paddings": paddings,
            "padding_algorithm": algorithm,
            "dilations": dilation,
            "groups": groups,
            "use_cudnn": use_cudnn,
            "data_format": data_format,
        },
    )
    channel = 1 if data_format == "NCHW" else 3
    return helper.append_activation(helper.append_bias_op(before_bias, dim_start=channel, dim_end=channel + 1))


def _filter_size(input, output_size, paddings, stride, dilation, data_format):
    """Returns the size of the filter that produces images of output_size."""
    if not output_size:
        raise ValueError("conv2d_transpose needs output_size or filter_size")
    if isinstance(output_size, Variable):
        raise TypeError("output_size must be numbers if filter_size is not given")
    extents = input.shape[2:4] if data_format == "NCHW" else input.shape[1:3]
    around = [2 * paddings[0], 2 * paddings[1]] if len(paddings) == 2 else [sum(paddings[:2]), sum(paddings[2:])]
    return [(output_size[i] - (extents[i] - 1) * stride[i] + around[i] - 1) // dilation[i] + 1 for i in (0, 1)]
