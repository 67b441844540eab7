"""Convolution and pooling of volumes, and adaptive pooling of images and volumes."""

from penstock._src.layers.conv import _require_bool
from penstock._src.layers.decorators import layer
from penstock._src.layers.helper import LayerHelper, require_variables
from penstock._src.parameters.initializer import Normal

__all__ = ["adaptive_pool2d", "adaptive_pool3d", "conv3d", "conv3d_transpose", "pool3d"]


def _list_of(value, count, what):
    if isinstance(value, int):
        return [value] * count
    if not isinstance(value, (list, tuple)) or len(value) != count:
        raise ValueError(f"{what} takes one number or {count}, not {value!r}")
    return list(value)


def _require_volume_format(data_format):
    if data_format not in ("NCDHW", "NDHWC"):
        raise ValueError(f"data_format must be NCDHW or NDHWC, not {data_format!r}")


def _channels(input, groups, data_format):
    """Returns (channels of the input, channels of a group); None means one group."""
    _require_volume_format(data_format)
    if len(input.shape) != 5:
        raise ValueError(f"the input must be volumes of 5 axes, but its shape is {input.shape}")
    channels = input.shape[1] if data_format == "NCDHW" else input.shape[4]
    if channels < 0:
        raise ValueError(f"the number of channels of the input must be known, but its shape is {input.shape}")
    if groups is not None and (groups < 1 or channels % groups != 0):
        raise ValueError(f"the number of input channels ({channels}) must be divisible by groups ({groups})")
    return channels, channels // (groups or 1)


def _paddings(padding, data_format):
    """Returns (6 paddings, algorithm) for 'SAME', 'VALID', one number, 3 numbers, 6 numbers, or a pair for each of the
    5 axes."""
    if isinstance(padding, str):
        algorithm = padding.upper()
        if algorithm not in ("SAME", "VALID"):
            raise ValueError(f"padding must be SAME, VALID or numbers, not {padding!r}")
        return [0] * 6, algorithm
    if isinstance(padding, (list, tuple)) and len(padding) == 5 and isinstance(padding[0], (list, tuple)):
        first = 2 if data_format == "NCDHW" else 1
        pairs, others = padding[first : first + 3], [*padding[:first], *padding[first + 3 :]]
        if any(extent for pair in others for extent in pair):
            raise ValueError(f"padding {padding}: only the axes of the volume are padded")
        padding = [extent for pair in pairs for extent in pair]
    if isinstance(padding, (list, tuple)) and len(padding) == 6:
        return list(padding), "EXPLICIT"
    return [extent for one in _list_of(padding, 3, "padding") for extent in (one, one)], "EXPLICIT"


def _shortened(paddings):
    """Returns one number per axis if both sides of every axis have equal padding, else the 6 paddings."""
    return paddings[::2] if paddings[::2] == paddings[1::2] else paddings


@layer()
def conv3d(
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
    data_format="NCDHW",
):
    """Convolves volumes with learned filters, and adds a bias.

    Args:
        input (Variable): shape [N, C, D, H, W] or [N, D, H, W, C] with known C, float32 or float64.
        filter_size (int|list): depth, height and width of the filters.
        stride (int|list): distance between neighbouring windows along each axis.
        padding (int|list|str): zeros around the input: one number, one for each spatial axis, two for each spatial
            axis, a pair for each of the five axes, 'SAME' or 'VALID'.
        dilation (int|list): distance between neighbouring elements of a window.
        data_format (str): 'NCDHW' or 'NDHWC'.

    Returns:
        Variable: shape [N, num_filters, depth, height, width] in the order of `data_format`, same type as `input`.

    Raises:
        ValueError: an argument does not fit the input or has an invalid value.

    Example:
        video = fluid.data('video', [None, 3, 8, 16, 16])
        out = fluid.layers.conv3d(video, num_filters=4, filter_size=3, padding=1)
        assert out.shape == (-1, 4, 8, 16, 16)
    """
    if param_attr is False:
        raise ValueError("conv3d needs its filter: param_attr must not be False")
    require_variables("conv3d", input=input)
    _require_bool(use_cudnn=use_cudnn)
    channels, group_channels = _channels(input, groups, data_format)
    helper = LayerHelper(
        "conv3d", input=input, param_attr=param_attr, bias_attr=bias_attr, use_cudnn=use_cudnn, act=act, name=name
    )
    filter_size = _list_of(filter_size, 3, "filter_size")
    paddings, algorithm = _paddings(padding, data_format)
    std = (2.0 / (filter_size[0] * filter_size[1] * filter_size[2] * channels)) ** 0.5
    weight = helper.create_parameter(
        helper.param_attr,
        [num_filters, group_channels] + filter_size,
        input.dtype,
        default_initializer=Normal(0.0, std, 0),
    )
    before_bias = helper.create_variable_for_type_inference(input.dtype)
    helper.append_op(
        "conv3d",
        {"Input": input, "Filter": weight},
        {"Output": before_bias},
        {
            "strides": _list_of(stride, 3, "stride"),
            "paddings": _shortened(paddings),
            "dilations": _list_of(dilation, 3, "dilation"),
            "groups": groups or 1,
            "use_cudnn": use_cudnn,
            "use_mkldnn": False,
            "padding_algorithm": algorithm,
            "data_format": data_format,
        },
    )
    return _biased(helper, before_bias, data_format)


def _biased(helper, before_bias, data_format):
    channel = 1 if data_format == "NCDHW" else 4
    return helper.append_activation(helper.append_bias_op(before_bias, dim_start=channel, dim_end=channel + 1))


@layer(like=conv3d)
def conv3d_transpose(
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
    data_format="NCDHW",
):
    """Computes the transpose of a convolution of volumes: each element adds its product with the filter to the result.

    Args:
        output_size (int|list): depth, height and width of the result; without `filter_size`, the size of the filters is
            derived from it.
        padding (int|list|str): as in conv3d, but the padding is cropped from the result.
        stride (int|list): distance between the positions of neighbouring elements in the result along each axis.
        dilation (int|list): distance between neighbouring elements of a filter in the result.

    Raises:
        ValueError: an argument does not fit the input, or neither `output_size` nor `filter_size` is given.

    Example:
        volume = fluid.data('volume', [None, 3, 4, 8, 8])
        out = fluid.layers.conv3d_transpose(volume, num_filters=2, filter_size=2, stride=2)
        assert out.shape == (-1, 2, 8, 16, 16)
    """
    if param_attr is False:
        raise ValueError("conv3d_transpose needs its filter: param_attr must not be False")
    require_variables("conv3d_transpose", input=input)
    _require_bool(use_cudnn=use_cudnn)
    channels, _ = _channels(input, groups, data_format)
    helper = LayerHelper(
        "conv3d_transpose", param_attr=param_attr, bias_attr=bias_attr, use_cudnn=use_cudnn, act=act, name=name
    )
    paddings, algorithm = _paddings(padding, data_format)
    stride, dilation = _list_of(stride, 3, "stride"), _list_of(dilation, 3, "dilation")
    output_size = [] if output_size is None else _list_of(output_size, 3, "output_size")
    if filter_size is None:
        if not output_size:
            raise ValueError("conv3d_transpose needs output_size or filter_size")
        extents = input.shape[2:5] if data_format == "NCDHW" else input.shape[1:4]
        filter_size = [
            (output_size[i] - (extents[i] - 1) * stride[i] + sum(paddings[2 * i : 2 * i + 2]) - 1) // dilation[i] + 1
            for i in range(3)
        ]
    filter_size = _list_of(filter_size, 3, "filter_size")
    weight = helper.create_parameter(
        helper.param_attr, [channels, num_filters // (groups or 1)] + filter_size, input.dtype
    )
    before_bias = helper.create_variable_for_type_inference(input.dtype)
    helper.append_op(
        "conv3d_transpose",
        {"Input": input, "Filter": weight},
        {"Output": before_bias},
        {
            "output_size": output_size,
            "strides": stride,
            "paddings": _shortened(paddings),
            "padding_algorithm": algorithm,
            "dilations": dilation,
            "groups": groups or 1,
            "use_cudnn": use_cudnn,
            "data_format": "NCHW" if data_format == "NCDHW" else "NHWC",
        },
    )
    return _biased(helper, before_bias, data_format)


@layer()
def pool3d(
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
    data_format="NCDHW",
):
    """Takes the maximum or the mean of a window that slides over each channel of volumes.

    Args:
        input (Variable): shape [N, C, D, H, W] or [N, D, H, W, C], float32 or float64.
        pool_size (int|list): depth, height and width of the window; not needed with `global_pooling`.
        pool_stride (int|list): distance between neighbouring windows along each axis.
        pool_padding (int|list|str): as `padding` of conv3d; a maximum never selects the padding.
        global_pooling (bool): whether the window is the whole volume.
        ceil_mode (bool): whether the number of windows is rounded up, so that the last window may extend beyond the
            volume.
        exclusive (bool): whether a mean leaves out the padding.
        data_format (str): 'NCDHW' or 'NDHWC'.

    Returns:
        Variable: shape [N, C, depth, height, width] in the order of `data_format`, with one element for each window;
        same type as `input`.

    Raises:
        ValueError: an argument has an invalid value.

    Example:
        video = fluid.data('video', [None, 3, 8, 16, 16])
        out = fluid.layers.pool3d(video, pool_size=2, pool_type='avg', pool_stride=2)
        assert out.shape == (-1, 3, 4, 8, 8)
    """
    if pool_type not in ("max", "avg"):
        raise ValueError(f"pool_type must be max or avg, not {pool_type!r}")
    if not global_pooling and pool_size == -1:
        raise ValueError("pool_size must be given unless global_pooling is True")
    _require_bool(use_cudnn=use_cudnn)
    _require_volume_format(data_format)
    paddings, algorithm = _paddings(pool_padding, data_format)
    if algorithm == "VALID" and ceil_mode:
        raise ValueError("ceil_mode contradicts padding 'VALID'; give one of them")
    helper = LayerHelper("pool3d", name=name).takes(input=input)
    out = helper.create_variable_for_type_inference(input.dtype)
    helper.append_op(
        "pool3d",
        {"X": input},
        {"Out": out},
        {
            "pooling_type": pool_type,
            "ksize": _list_of(pool_size, 3, "pool_size"),
            "global_pooling": global_pooling,
            "strides": _list_of(pool_stride, 3, "pool_stride"),
            "paddings": _shortened(paddings),
            "padding_algorithm": algorithm,
            "use_cudnn": use_cudnn,
            "ceil_mode": ceil_mode,
            "use_mkldnn": False,
            "exclusive": exclusive,
            "data_format": data_format,
        },
    )
    return out


def _adaptive_pool(layer, axes, input, pool_size, pool_type, require_index, name):
    require_variables(layer, input=input)
    _require_bool(require_index=require_index)
    if pool_type not in ("max", "avg"):
        raise ValueError(f"pool_type must be max or avg, not {pool_type!r}")
    if pool_type == "avg" and require_index:
        raise ValueError("require_index needs pool_type 'max'; a mean has no position")
    op_type = f"max_pool{axes}d_with_index" if pool_type == "max" else f"pool{axes}d"
    helper = LayerHelper(op_type, name=name)
    out = helper.create_variable_for_type_inference(input.dtype)
    outputs = {"Out": out}
    attrs = {"ksize": _list_of(pool_size, axes, "pool_size"), "adaptive": True}
    if pool_type == "max":
        outputs["Mask"] = helper.create_variable_for_type_inference(input.dtype)
    else:
        attrs["pooling_type"] = pool_type
    helper.append_op(op_type, {"X": input}, outputs, attrs)
    return (out, outputs["Mask"]) if require_index else out


@layer()
def adaptive_pool2d(input, pool_size, pool_type="max", require_index=False, name=None):
    """Divides images into a given number of windows and takes the maximum or the mean of each.

    Args:
        input (Variable): shape [N, C, H, W], float32 or float64.
        pool_size (int|list): the numbers of windows along height and width.
        require_index (bool): whether to return the positions of the maxima too.

    Returns:
        Variable: shape [N, C, *pool_size], same type as `input`; with `require_index`, a pair of it and an int32
        Variable of the same shape, the index of each maximum in the flattened plane of H * W pixels.

    Raises:
        ValueError: `pool_type` has an invalid value, or is 'avg' with `require_index`.

    Example:
        image = fluid.data('image', [None, 3, 9, 9])
        out, where = fluid.layers.adaptive_pool2d(image, [2, 4], require_index=True)
        assert out.shape == where.shape == (-1, 3, 2, 4)
    """
    return _adaptive_pool("adaptive_pool2d", 2, input, pool_size, pool_type, require_index, name)


@layer(like=adaptive_pool2d)
def adaptive_pool3d(input, pool_size, pool_type="max", require_index=False, name=None):
    """Divides volumes into a given number of windows and takes the maximum or the mean of each.

    Args:
        input (Variable): shape [N, C, D, H, W], float32 or float64.
        pool_size (int|list): the numbers of windows along depth, height and width.

    Returns:
        Variable: shape [N, C, *pool_size], same type as `input`; with `require_index`, a pair of it and an int32
        Variable of the same shape, the index of each maximum in the flattened volume of D * H * W elements.

    Example:
        volume = fluid.data('volume', [None, 3, 5, 9, 9])
        out = fluid.layers.adaptive_pool3d(volume, 2, pool_type='avg')
        assert out.shape == (-1, 3, 2, 2, 2)
    """
    return _adaptive_pool("adaptive_pool3d", 3, input, pool_size, pool_type, require_index, name)
