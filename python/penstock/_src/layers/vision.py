"""Layers that rearrange or resample pixels: channels, blocks, frames, windows, affine transformations."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock._src.ir.variable import Variable
from penstock._src.layers.decorators import Attrs, layer, op_layer
from penstock._src.layers.helper import LayerHelper, describe, require_kind
from penstock._src.layers.spatial import IMAGES

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any


@op_layer("affine_channel")
def affine_channel(
    x: Variable,
    scale: Variable | None = None,
    bias: Variable | None = None,
    data_layout: str = "NCHW",
    name: str | None = None,
    act: str | None = None,
) -> Attrs:
    """Multiplies each channel by its scale and adds its bias.

    Args:
        x: shape [N, C, ...], or [N, ..., C] with data_layout='NHWC'.
        scale: shape [C], same type as `x`.
        bias: shape [C], same type as `x`.

    Raises:
        TypeError: `x`, `scale` or `bias` is not a Variable.

    Example:
        image = fluid.data('image', [None, 3, 4, 4])
        scale = fluid.layers.create_parameter([3], 'float32')
        bias = fluid.layers.create_parameter([3], 'float32')
        assert fluid.layers.affine_channel(image, scale, bias, act='relu').shape == (-1, 3, 4, 4)
    """


@layer()
def affine_grid(theta: Variable, out_shape: Sequence[Any] | Variable, name: str | None = None) -> Variable:
    """Computes the sampling positions of affinely transformed images, for `grid_sampler`.

    Args:
        theta (Variable): shape [N, 2, 3], an affine transformation for each image, float32 or float64.
        out_shape (list|tuple|Variable): the shape [N, C, H, W] of the transformed images; a Variable is int32.
        name (str): has no effect.

    Returns:
        Variable: shape [N, H, W, 2], x and y of each pixel, from -1 (first pixel) to 1 (last pixel); same type as
        `theta`.

    Raises:
        ValueError: `out_shape` is not a list, a tuple or a Variable.

    Example:
        theta = fluid.data('theta', [None, 2, 3])
        grid = fluid.layers.affine_grid(theta, [2, 3, 4, 5])
        assert grid.shape == (-1, 4, 5, 2)

    Reference:
        Jaderberg, Simonyan, Zisserman, Kavukcuoglu: "Spatial transformer networks", NIPS 2015.
    """
    if not isinstance(out_shape, (list, tuple, Variable)):
        raise ValueError(f"out_shape must be a list, a tuple or a Variable, not {describe(out_shape)}")
    helper = LayerHelper("affine_grid").takes(theta=theta)
    inputs, attrs = {"Theta": theta}, {}
    if isinstance(out_shape, Variable):
        inputs["OutputShape"] = out_shape
    else:
        attrs["output_shape"] = list(out_shape)
    out = helper.create_variable_for_type_inference(theta.dtype)
    helper.append_op("affine_grid", inputs, {"Output": out}, attrs)
    return out


@op_layer("grid_sampler", output="Output")
def grid_sampler(x: Variable, grid: Variable, name: str | None = None) -> Attrs:
    """Samples images at given positions by bilinear interpolation.

    Args:
        x: shape [N, C, H, W].
        grid: shape [N, height, width, 2], the positions: x and y from -1 (first pixel) to 1 (last pixel); same type as
            `x`. Pixels outside the image are zero.

    Returns:
        Variable: shape [N, C, height, width], same type as `x`.

    Example:
        image = fluid.data('image', [None, 3, 8, 8])
        grid = fluid.data('grid', [None, 4, 5, 2])
        assert fluid.layers.grid_sampler(image, grid).shape == (-1, 3, 4, 5)
    """


@op_layer("pixel_shuffle")
def pixel_shuffle(x: Variable, upscale_factor: int) -> Attrs:
    """Rearranges channels into blocks of pixels, which makes images larger.

    Args:
        x: shape [N, C * upscale_factor * upscale_factor, H, W].

    Returns:
        Variable: shape [N, C, H * upscale_factor, W * upscale_factor], same type as `x`.

    Raises:
        penstock.ProgramError: upscale_factor * upscale_factor does not divide the number of channels.
        TypeError: `x` is not a Variable, or `upscale_factor` is not an int.

    Example:
        x = fluid.data('x', [None, 12, 4, 4])
        assert fluid.layers.pixel_shuffle(x, 2).shape == (-1, 3, 8, 8)

    Reference:
        Shi et al.: "Real-time single image and video super-resolution using an efficient sub-pixel convolutional
        neural network", CVPR 2016.
    """
    require_kind("pixel_shuffle", int, upscale_factor=upscale_factor)
    return None


@op_layer("shuffle_channel")
def shuffle_channel(x: Variable, group: int, name: str | None = None) -> Attrs:
    """Interleaves the channels of groups: the first channel of each group, then the second of each, and so on.

    Args:
        x: shape [N, C, H, W].
        group: the number of groups; it must divide C.

    Raises:
        penstock.ProgramError: `group` does not divide C.
        TypeError: `x` is not a Variable, or `group` is not an int.

    Example:
        x = fluid.data('x', [None, 6, 4, 4])
        assert fluid.layers.shuffle_channel(x, group=2).shape == (-1, 6, 4, 4)
    """
    require_kind("shuffle_channel", int, group=group)
    return None


@op_layer("space_to_depth")
def space_to_depth(x: Variable, blocksize: int, name: str | None = None) -> Attrs:
    """Rearranges blocks of pixels into channels, which makes images smaller.

    Args:
        x: shape [N, C, H, W]. C is divisible by blocksize * blocksize, H and W by blocksize.

    Returns:
        Variable: shape [N, C * blocksize * blocksize, H / blocksize, W / blocksize], same type as `x`.

    Raises:
        penstock.ProgramError: C, H or W is not divisible as required.
        TypeError: `x` is not a Variable, or `blocksize` is not an int.

    Example:
        x = fluid.data('x', [None, 4, 6, 8])
        assert fluid.layers.space_to_depth(x, 2).shape == (-1, 16, 3, 4)
    """
    require_kind("space_to_depth", int, blocksize=blocksize)
    return None


@op_layer("temporal_shift")
def temporal_shift(x: Variable, seg_num: int, shift_ratio: float = 0.25, name: str | None = None) -> Attrs:
    """Replaces some channels of each video frame by those of the previous frame, and some by those of the next frame.

    Args:
        x: shape [N * seg_num, C, H, W].
        shift_ratio: the share of channels taken from each of the two frames, at most 0.5.

    Raises:
        penstock.ProgramError: `seg_num` does not divide the first extent, or `shift_ratio` is out of range.
        TypeError: `x` is not a Variable, or `seg_num` is not an int.

    Example:
        x = fluid.data('x', [None, 8, 4, 4])
        assert fluid.layers.temporal_shift(x, seg_num=2).shape == (-1, 8, 4, 4)

    Reference:
        Lin, Gan, Han: "TSM: temporal shift module for efficient video understanding", ICCV 2019.
    """
    require_kind("temporal_shift", int, seg_num=seg_num)
    return None


@op_layer("unfold", output="Y")
def unfold(
    x: Variable,
    kernel_sizes: int | list[int],
    strides: int | list[int] = 1,
    paddings: int | list[int] = 0,
    dilations: int | list[int] = 1,
    name: str | None = None,
) -> Attrs:
    """Extracts the windows of images as columns (im2col).

    Args:
        x: shape [N, C, H, W].
        kernel_sizes: height and width of a window.
        strides: distance between neighbouring windows along height and width.
        paddings: zeros around the image: one number, [height, width], or [top, left, bottom, right].
        dilations: distance between neighbouring elements of a window.

    Returns:
        Variable: shape [N, C * height * width of a window, number of windows], same type as `x`.

    Raises:
        ValueError: `x` does not have 4 axes, or an argument has the wrong number of values.

    Example:
        x = fluid.data('x', [None, 3, 6, 6])
        assert fluid.layers.unfold(x, [3, 3], paddings=1).shape == (-1, 27, 36)
    """
    if len(x.shape) != 4:
        raise ValueError(f"unfold: x must have 4 axes, but its shape is {x.shape}")
    paddings = [paddings] * 4 if isinstance(paddings, int) else list(paddings)
    if len(paddings) not in (2, 4):
        raise ValueError(f"paddings takes one number, two or four, not {paddings!r}")
    return {
        "kernel_sizes": IMAGES.per_axis(kernel_sizes, "kernel_sizes"),
        "strides": IMAGES.per_axis(strides, "strides"),
        "paddings": paddings * 2 if len(paddings) == 2 else paddings,
        "dilations": IMAGES.per_axis(dilations, "dilations"),
    }
