"""Layers that convert between sequences, padded tensors and images, and that replace the sequences of a tensor."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock._src.ir.types import VarType, to_dtype
from penstock._src.ir.variable import Variable
from penstock._src.layers.decorators import Attrs, layer, op_layer, op_layer_with_results
from penstock._src.layers.helper import LayerHelper
from penstock._src.layers.spatial import IMAGES

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any


@op_layer_with_results(
    "sequence_pad", "Out Length", fluid_accepts={"x pad_value": "int32 int64 float32 float64"}, stop_gradient="Length"
)
def sequence_pad(x: Variable, pad_value: Variable, maxlen: int | None = None, name: str | None = None) -> Attrs:
    """Pads sequences to a common length and returns them as a dense tensor.

    Args:
        x: shape [rows, ...] with sequences.
        pad_value: shape [1] or the shape of a row; same type as `x`.
        maxlen: the common length; None: the length of the longest sequence.

    Returns:
        tuple[Variable, Variable]: the padded sequences, shape [sequences, length, ...], same type as `x`, and their
            lengths before padding, shape [sequences], int64.

    Example:
        x = fluid.data('x', [None, 8], lod_level=1)
        padded, lengths = fluid.layers.sequence_pad(x, fluid.layers.zeros([1], 'float32'))
    """
    pad_value.stop_gradient = True
    return {"padded_length": -1 if maxlen is None else maxlen}


@op_layer("sequence_unpad", fluid_accepts={"x": "int32 int64 float32 float64", "length": "int64"})
def sequence_unpad(x: Variable, length: Variable, name: str | None = None) -> Attrs:
    """Removes the padding from sequences; the inverse of sequence_pad.

    Args:
        x: shape [N, length, ...].
        length: shape [N]: the length of each sequence.

    Returns:
        Variable: shape [rows, ...] with N sequences, same type as `x`.

    Example:
        x = fluid.data('x', [4, 10, 8])
        length = fluid.data('length', [4], 'int64')
        y = fluid.layers.sequence_unpad(x, length)
    """
    length.stop_gradient = True
    return None


@op_layer("sequence_mask", inputs={"MaxLenTensor": "maxlen"}, output="Y", stop_gradient=True)
def sequence_mask(
    x: Variable, maxlen: int | Variable | None = None, dtype: str | VarType = "int64", name: str | None = None
) -> Attrs:
    """Creates a mask from lengths: each row has ones up to its length, then zeros.

    Args:
        x: any shape, int64: the lengths.
        maxlen: length of a row; None: the largest element of `x`; a Variable has one element.

    Returns:
        Variable: shape [shape of `x`..., maxlen], of type `dtype`, with stop_gradient set.

    Example:
        lengths = fluid.data('lengths', [None], 'int64')
        mask = fluid.layers.sequence_mask(lengths, maxlen=10, dtype='float32')
    """
    return {"out_dtype": int(to_dtype(dtype)), **({"maxlen": -1} if maxlen is None else {})}


@op_layer("lod_reset", fluid_accepts={"x": "int32 int64 float32 float64"})
def lod_reset(x: Variable, y: Variable | None = None, target_lod: list[int] | None = None) -> Attrs:
    """Replaces the sequences (LoD) of a variable.

    Args:
        x: shape [rows, ...].
        y: provides the new sequences; a `y` without sequences holds their offsets, int32.
        target_lod: offsets of the new sequences, if `y` is not given.

    Returns:
        Variable: same shape and type as `x`, with the new sequences.

    Raises:
        TypeError: `x` or `y` is not a Variable, or `x` has an unsupported element type.
        ValueError: neither `y` nor `target_lod` is given.

    Example:
        x = fluid.data('x', [6, 8])
        y = fluid.layers.lod_reset(x, target_lod=[0, 4, 6])
    """
    if y is None and target_lod is None:
        raise ValueError("lod_reset: give y or target_lod")
    return {"target_lod": None if y is not None else list(target_lod or [])}


@layer(fluid_accepts={"x": "int32 int64 float32 float64"})
def lod_append(x: Variable, level: Sequence[int] | Sequence[Any] | Variable) -> Variable:
    """Appends a level of sequences below the existing levels of a variable.

    Args:
        x (Variable): shape [rows, ...].
        level (list[int] | tuple | Variable): offsets of the new level; a Variable holds them or has sequences.

    Returns:
        Variable: same shape and type as `x`, with one more level of sequences.

    Raises:
        ValueError: `level` is not a list, a tuple or a Variable.

    Example:
        x = fluid.data('x', [6, 8])
        y = fluid.layers.lod_append(x, [0, 4, 6])
    """
    attrs: dict[str, Any]
    if isinstance(level, Variable):
        inputs, attrs = {"X": x, "Y": level}, {"append": True}
    elif isinstance(level, (list, tuple)):
        inputs, attrs = {"X": x}, {"append": True, "target_lod": list(level)}
    else:
        raise ValueError(f"lod_append: level must be a list, a tuple or a variable, not {level!r}")
    helper = LayerHelper("lod_append").takes(x=x)
    out = helper.create_variable_for_type_inference(x.dtype)
    helper.append_op("lod_reset", inputs, {"Out": out}, attrs)
    return out


@op_layer("im2sequence", fluid_accepts={"input": "float32 float64"}, inputs={"X": "input", "Y": "input_image_size"})
def im2sequence(
    input: Variable,
    filter_size: int | list[int] = 1,
    stride: int | list[int] = 1,
    padding: int | list[int] = 0,
    input_image_size: Variable | None = None,
    out_stride: int | list[int] = 1,
    name: str | None = None,
) -> Attrs:
    """Extracts windows from each image; each flattened window is a row of the image's sequence.

    Args:
        input: shape [N, channels, height, width].
        filter_size: height and width of a window.
        stride: distance between neighbouring windows.
        padding: zeros around each image: one number, [height, width], or [up, left, down, right].
        input_image_size: shape [N, 2]; the original size of each image.
        out_stride: factor by which the input is smaller than the original image; used with `input_image_size`.

    Returns:
        Variable: shape [windows, channels * window height * window width] with a sequence for each image, same type
            as `input`.

    Raises:
        ValueError: `filter_size`, `stride` or `out_stride` has the wrong number of values.

    Example:
        image = fluid.data('image', [None, 1, 6, 6])
        rows = fluid.layers.im2sequence(image, filter_size=2, stride=2)
        assert rows.shape == (-1, 4)
    """
    paddings = [padding] * 2 if isinstance(padding, int) else list(padding)
    return {
        "kernels": IMAGES.per_axis(filter_size, "filter_size"),
        "strides": IMAGES.per_axis(stride, "stride"),
        "paddings": paddings * 2 if len(paddings) == 2 else paddings,
        "out_stride": None if input_image_size is None else IMAGES.per_axis(out_stride, "out_stride"),
    }
