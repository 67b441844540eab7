"""Resizing of images and volumes."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING

from penstock._src.base.call_site import stack_level
from penstock._src.ir.types import float_attr
from penstock._src.ir.variable import Variable
from penstock._src.layers.decorators import layer
from penstock._src.layers.helper import LayerHelper, describe, require_variables
from penstock._src.layers.spatial import IMAGES, VOLUMES
from penstock._src.layers.tensor import int_list
from penstock._src.layers.variants import variants

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any


_METHODS = {"BILINEAR": "bilinear", "TRILINEAR": "trilinear", "NEAREST": "nearest", "BICUBIC": "bicubic"}
_SIZES = ("out_d", "out_h", "out_w")


@variants
def _resizing(
    input: Variable,
    out_shape: Sequence[int | Variable] | Variable | None = None,
    scale: float | Variable | None = None,
    name: str | None = None,
    resample: str = "BILINEAR",
    actual_shape: Variable | None = None,
    align_corners: bool = True,
    align_mode: int = 1,
    data_format: str = "NCHW",
    *,
    _methods: tuple[str, ...] = (),
) -> Variable:
    """Resizes images or volumes by interpolation.

    Args:
        input (Variable): shape [N, C, H, W], or [N, C, D, H, W] with resample='TRILINEAR', or with the channels last
            if `data_format` says so; float32 or float64.
        out_shape: the spatial extents of the result: numbers or int32 Variables of shape [1], or one int32 Variable
            that holds all extents.
        scale: factor of the spatial extents, if `out_shape` is None.
        resample: {methods}.
        actual_shape: replaces `out_shape` at run time; deprecated.
        align_mode: position of pixels in the linear methods without `align_corners`: 0 at the centre of their squares,
            1 at the upper left corner.
        data_format: 'NCHW' or 'NHWC', 'NCDHW' or 'NDHWC' for volumes.

    Returns:
        Variable: the shape of `input` with the new spatial extents, same type as `input`.

    Raises:
        ValueError: an argument has an invalid value, or neither `out_shape` nor `scale` is given.
        TypeError: `input` is not a Variable, or `out_shape`, `scale`, `actual_shape` or `align_corners` has the wrong
            type.

    Example:
        image = fluid.data('image', [None, 3, 8, 8])
        larger = fluid.layers.{layer}(image, out_shape=[16, 12], resample='{method}')
        assert larger.shape == (-1, 3, 16, 12)
    """
    _check(_methods, input, out_shape, scale, resample, align_corners, align_mode, data_format)
    layout = "NCHW" if data_format[1] == "C" else "NHWC"
    attrs = {"align_corners": align_corners, "align_mode": align_mode, "data_layout": layout}
    return _resize(input, out_shape, scale, name, _METHODS[resample], actual_shape, attrs)


def _methods(*names: str) -> dict[str, Any]:
    *most, last = map(repr, names)
    return {"_methods": names, "methods": f"{', '.join(most)} or {last}", "method": names[-2]}


interpolate = layer()(_resizing("interpolate", **_methods("BILINEAR", "NEAREST", "BICUBIC", "TRILINEAR")))
image_resize = layer()(_resizing("image_resize", **_methods("BILINEAR", "NEAREST", "TRILINEAR")))


@variants
def _linear_resizing(
    input: Variable,
    out_shape: Sequence[int | Variable] | Variable | None = None,
    scale: float | Variable | None = None,
    name: str | None = None,
    actual_shape: Variable | None = None,
    align_corners: bool = True,
    align_mode: int = 1,
    data_format: str = "NCHW",
    *,
    _method: str = "",
) -> Variable:
    """Resizes {data} by {_method} interpolation.

    Args:
        input (Variable): shape {shape}; float32 or float64.
        out_shape: {extents} of the result: numbers or int32 Variables of shape [1], or one int32 Variable that holds
            them.
        scale: factor of {extents}, if `out_shape` is None.
        data_format: {formats}.

    Example:
        {data} = fluid.data('{data}', [None, 3, {half}])
        larger = fluid.layers.resize_{_method}({data}, out_shape=[{example}], align_corners=False)
        assert larger.shape == (-1, 3, {example})
    """
    return image_resize(
        input, out_shape, scale, name, _method.upper(), actual_shape, align_corners, align_mode, data_format
    )


resize_bilinear = layer(like=image_resize)(_linear_resizing("resize_bilinear", _method="bilinear", **IMAGES.variant))
resize_trilinear = layer(like=image_resize)(
    _linear_resizing("resize_trilinear", _method="trilinear", **VOLUMES.variant)
)


@layer(like=resize_bilinear)
def resize_nearest(
    input: Variable,
    out_shape: Sequence[int | Variable] | Variable | None = None,
    scale: float | int | Variable | None = None,
    name: str | None = None,
    actual_shape: Variable | None = None,
    align_corners: bool = True,
    data_format: str = "NCHW",
) -> Variable:
    """Resizes images by nearest-neighbour interpolation.

    Example:
        image = fluid.data('image', [None, 3, 8, 8])
        larger = fluid.layers.resize_nearest(image, scale=1.5)
        assert larger.shape == (-1, 3, 12, 12)
    """
    return image_resize(input, out_shape, scale, name, "NEAREST", actual_shape, align_corners, 1, data_format)


@layer()
def image_resize_short(input: Variable, out_short_len: int, resample: str = "BILINEAR") -> Variable:
    """Resizes images so that the shorter side has a given length; the aspect ratio stays the same.

    Args:
        input (Variable): shape [N, C, H, W] with known H and W, float32 or float64.
        out_short_len (int): the length of the shorter side.
        resample (str): 'BILINEAR' or 'NEAREST'.

    Returns:
        Variable: the shape of `input` with the new spatial extents, same type as `input`.

    Raises:
        ValueError: `input` does not have 4 axes, or `resample` has an invalid value.

    Example:
        image = fluid.data('image', [None, 3, 8, 12])
        short = fluid.layers.image_resize_short(image, 4)
        assert short.shape == (-1, 3, 4, 6)
    """
    require_variables("image_resize_short", input=input)
    if len(input.shape) != 4:
        raise ValueError(f"image_resize_short: the input must have 4 axes, but its shape is {input.shape}")
    sides = list(input.shape[2:])
    short = sides.index(min(sides))
    out_shape = list(sides)
    out_shape[short] = out_short_len
    out_shape[1 - short] = int(float(sides[1 - short]) * (float(out_short_len) / float(sides[short])) + 0.5)
    return image_resize(input, out_shape=out_shape, resample=resample)


def _resize(
    input: Variable,
    out_shape: Sequence[int | Variable] | Variable | None,
    scale: float | Variable | None,
    name: str | None,
    method: str,
    actual_shape: Variable | None,
    attrs: dict[str, Any],
) -> Variable:
    helper = LayerHelper(method + "_interp", input=input, name=name)
    inputs = {"X": input}
    attrs = {**dict.fromkeys(_SIZES, -1), "interp_method": method, **attrs}
    if out_shape is not None:
        _add_out_shape(helper, inputs, attrs, out_shape, len(input.shape) - 2)
    elif isinstance(scale, Variable):
        scale.stop_gradient = True
        inputs["Scale"] = scale
    elif not isinstance(scale, (int, float)):
        raise TypeError(f"scale must be a number or a Variable, not {describe(scale)}")
    elif scale <= 0:
        raise ValueError(f"scale must be greater than zero, not {scale}")
    else:
        attrs["scale"] = float_attr(scale)
    if isinstance(actual_shape, Variable):
        warnings.warn("actual_shape is deprecated: out_shape may be a Variable", stacklevel=stack_level())
        actual_shape.stop_gradient = True
        inputs["OutSize"] = actual_shape
    elif actual_shape is not None:
        raise TypeError(f"actual_shape must be a Variable or None, not {describe(actual_shape)}")
    out = helper.create_variable_for_type_inference(helper.input_dtype())
    helper.append_op(method + "_interp", inputs, {"Out": out}, attrs)
    return out


def _check(
    methods: tuple[str, ...],
    input: Variable,
    out_shape: Any,
    scale: Any,
    resample: str,
    align_corners: bool,
    align_mode: int,
    data_format: str,
) -> None:
    require_variables("image_resize", input=input)
    if resample not in methods:
        raise ValueError(f"resample must be one of {', '.join(methods)}, not {resample!r}")
    rank = 5 if resample == "TRILINEAR" else 4
    if len(input.shape) != rank:
        raise ValueError(f"{resample} takes an input of {rank} axes, but its shape is {input.shape}")
    if not isinstance(align_corners, bool):
        raise TypeError(f"align_corners must be True or False, not {describe(align_corners)}")
    if align_mode not in (0, 1):
        raise ValueError(f"align_mode must be 0 or 1, not {align_mode!r}")
    if out_shape is None and scale is None:
        raise ValueError("one of out_shape and scale must be given")
    formats = ("NCHW", "NHWC") if rank == 4 else ("NCDHW", "NDHWC")
    if data_format not in formats:
        raise ValueError(f"data_format must be {' or '.join(formats)} for an input of {rank} axes, not {data_format!r}")


def _add_out_shape(
    helper: LayerHelper, inputs: dict[str, Any], attrs: dict[str, Any], out_shape: Any, axes: int
) -> None:
    """Sets the sizes in attrs, or adds the Variables that hold them to the inputs."""
    if isinstance(out_shape, Variable):
        out_shape.stop_gradient = True
        inputs["OutSize"] = out_shape
        return
    if not isinstance(out_shape, (list, tuple)):
        raise TypeError(f"out_shape must be a list, a tuple or a Variable, not {describe(out_shape)}")
    if len(out_shape) != axes:
        raise ValueError(f"out_shape must have {axes} sizes for an input of {axes + 2} axes, not {len(out_shape)}")
    for size in out_shape:
        if not isinstance(size, Variable) and size <= 0:
            raise ValueError(f"each size in out_shape must be greater than 0, not {size}")
    sizes, variables = int_list(helper, [size if isinstance(size, Variable) else int(size) for size in out_shape])
    if variables:
        inputs["SizeTensor"] = variables
    attrs.update(zip(_SIZES[3 - axes :], sizes))
