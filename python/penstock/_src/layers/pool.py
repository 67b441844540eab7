"""Pooling of images and volumes: by windows of a given size, or by a given number of windows."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from penstock._src.ir.variable import Variable
from penstock._src.layers.decorators import layer
from penstock._src.layers.helper import LayerHelper, require_variables
from penstock._src.layers.spatial import IMAGES, VOLUMES, Spatial, require_bool, shortened
from penstock._src.layers.variants import variants

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any


def _require_pool_type(pool_type: object) -> None:
    if pool_type not in ("max", "avg"):
        raise ValueError(f"pool_type must be max or avg, not {pool_type!r}")


@variants
def _pooling(
    input: Variable,
    pool_size: int | Sequence[int] = -1,
    pool_type: str = "max",
    pool_stride: int | Sequence[int] = 1,
    pool_padding: int | Sequence[Any] | str = 0,
    global_pooling: bool = False,
    use_cudnn: bool = True,
    ceil_mode: bool = False,
    name: str | None = None,
    exclusive: bool = True,
    data_format: str = "NCHW",
    *,
    _kind: Spatial = IMAGES,
) -> Variable:
    """Takes the maximum or the mean of a window that slides over each channel of {data}.

    Args:
        input (Variable): shape {shape}; float32 or float64.
        pool_size: {extents} of the window; not needed with `global_pooling`.
        pool_stride: distance between neighbouring windows along each axis.
        pool_padding: as `padding` of conv{axes}d; a maximum never selects the padding.
        global_pooling: the window is the whole {one}.
        ceil_mode: round the number of windows up, so that the last window may extend beyond the {one}.
        exclusive: compute a mean over the elements of the {one} only, without the padding.
        data_format: {formats}.

    Returns:
        Variable: shape [N, C, {per_axis}] in the order of `data_format`, with one element for each
        window; same type as `input`.

    Raises:
        ValueError: an argument has an invalid value.

    Example:
        {data} = fluid.data('{data}', [None, 3, {example}])
        assert fluid.layers.pool{axes}d({data}, pool_size=2, pool_stride=2).shape == (-1, 3, {half})
    """
    _require_pool_type(pool_type)
    if not global_pooling and pool_size == -1:
        raise ValueError("pool_size must be given unless global_pooling is True")
    require_bool(use_cudnn=use_cudnn)
    _kind.require_format(data_format)
    paddings, algorithm = _kind.paddings(pool_padding, data_format)
    if algorithm == "VALID" and ceil_mode:
        raise ValueError("ceil_mode contradicts padding 'VALID'; give one of them")
    op_type = f"pool{_kind.axes}d"
    helper = LayerHelper(op_type, name=name).takes(input=input)
    out = helper.create_variable_for_type_inference(input.dtype)
    attrs = {
        "pooling_type": pool_type,
        "ksize": _kind.per_axis(pool_size, "pool_size"),
        "global_pooling": global_pooling,
        "strides": _kind.per_axis(pool_stride, "pool_stride"),
        "paddings": shortened(paddings),
        "padding_algorithm": algorithm,
        "use_cudnn": use_cudnn,
        "ceil_mode": ceil_mode,
        "use_mkldnn": False,
        "exclusive": exclusive,
        "data_format": data_format,
    }
    helper.append_op(op_type, {"X": input}, {"Out": out}, attrs)
    return out


pool2d = layer()(_pooling("pool2d", **IMAGES.variant))
pool3d = layer()(_pooling("pool3d", **VOLUMES.variant))


@variants
def _adaptive_pooling(
    input: Variable,
    pool_size: int | Sequence[Any],
    pool_type: str = "max",
    require_index: bool = False,
    name: str | None = None,
    *,
    _kind: Spatial = IMAGES,
) -> Variable:
    """Divides {data} into a given number of windows and takes the maximum or the mean of each.

    Args:
        input (Variable): shape {channels_first}, float32 or float64.
        pool_size (int|list): the numbers of windows along {extents}.
        require_index (bool): whether to return the positions of the maxima too.

    Returns:
        Variable: shape [N, C, *pool_size], same type as `input`; with `require_index`, a pair of it and an int32
        Variable of the same shape, the index of each maximum in the flattened {flattened}.

    Raises:
        ValueError: `pool_type` has an invalid value, or is 'avg' with `require_index`.

    Example:
        {example_of_windows}
    """
    require_variables(f"adaptive_pool{_kind.axes}d", input=input)
    require_bool(require_index=require_index)
    _require_pool_type(pool_type)
    if pool_type == "avg" and require_index:
        raise ValueError("require_index needs pool_type 'max'; a mean has no position")
    op_type = f"max_pool{_kind.axes}d_with_index" if pool_type == "max" else f"pool{_kind.axes}d"
    helper = LayerHelper(op_type, name=name)
    out = helper.create_variable_for_type_inference(input.dtype)
    outputs = {"Out": out}
    attrs = {"ksize": _kind.per_axis(pool_size, "pool_size"), "adaptive": True}
    if pool_type == "max":
        outputs["Mask"] = helper.create_variable_for_type_inference(input.dtype)
    else:
        attrs["pooling_type"] = pool_type
    helper.append_op(op_type, {"X": input}, outputs, attrs)
    return cast(Variable, (out, outputs["Mask"])) if require_index else out


adaptive_pool2d = layer()(
    _adaptive_pooling(
        "adaptive_pool2d",
        channels_first="[N, C, H, W]",
        flattened="plane of H * W pixels",
        example_of_windows="""image = fluid.data('image', [None, 3, 9, 9])
        out, where = fluid.layers.adaptive_pool2d(image, [2, 4], require_index=True)
        assert out.shape == where.shape == (-1, 3, 2, 4)""",
        **IMAGES.variant,
    )
)
adaptive_pool3d = layer()(
    _adaptive_pooling(
        "adaptive_pool3d",
        channels_first="[N, C, D, H, W]",
        flattened="volume of D * H * W elements",
        example_of_windows="""volume = fluid.data('volume', [None, 3, 5, 9, 9])
        out = fluid.layers.adaptive_pool3d(volume, 2, pool_type='avg')
        assert out.shape == (-1, 3, 2, 2, 2)""",
        **VOLUMES.variant,
    )
)
