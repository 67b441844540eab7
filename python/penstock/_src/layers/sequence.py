"""Layers over sequences of rows."""

from __future__ import annotations

from penstock._src.ir.types import VarType, to_dtype
from penstock._src.ir.variable import Variable
from penstock._src.layers.conv import _pair
from penstock._src.layers.decorators import Attrs, layer, op_layer
from penstock._src.layers.helper import LayerHelper, describe, require_rank
from penstock._src.layers.nn import squeeze, topk

__all__ = [
    "crf_decoding",
    "ctc_greedy_decoder",
    "edit_distance",
    "im2sequence",
    "lod_append",
    "lod_reset",
    "row_conv",
    "sequence_concat",
    "sequence_conv",
    "sequence_enumerate",
    "sequence_expand",
    "sequence_expand_as",
    "sequence_first_step",
    "sequence_last_step",
    "sequence_mask",
    "sequence_pad",
    "sequence_pool",
    "sequence_reshape",
    "sequence_reverse",
    "sequence_scatter",
    "sequence_slice",
    "sequence_softmax",
    "sequence_unpad",
]


def _one_op(op_type, inputs, attrs=None, out="Out", layer=None, name=None, stop_gradient=False):
    """Appends an op with one output and returns the output; names are generated from `layer`, or else the op type."""
    helper = LayerHelper(layer or op_type, name=name)
    helper.require_slots(inputs)
    slot, first = next(iter(inputs.items()))
    if isinstance(first, (list, tuple)) and first:
        first = first[0]
    helper.takes(**{slot: first})
    var = helper.create_variable_for_type_inference(first.dtype, stop_gradient=stop_gradient)
    helper.append_op(op_type, inputs, {out: var}, attrs)
    return var


@layer("sequence_pool", fluid_accepts={"input": "float32 float64"})
def sequence_pool(input, pool_type, is_test=False, pad_value=0.0):
    """Reduces each sequence to one row.

    Args:
        input (Variable): shape [rows, ...] with sequences.
        pool_type (str): 'sum', 'average', 'sqrt' (the sum divided by the square root of the length), 'max', 'first' or
            'last'.
        is_test (bool): do not keep the values that a gradient needs.
        pad_value (float): the elements of an empty sequence's row.

    Returns:
        Variable: shape [number of sequences, ...], same type as `input`.

    Raises:
        TypeError: `input` is not a Variable, or has an unsupported element type, or `pool_type` is not a str.

    Example:
        x = fluid.data('x', [None, 8], lod_level=1)
        y = fluid.layers.sequence_pool(x, 'average')
    """
    helper = LayerHelper("sequence_pool").takes(input=input)
    if not isinstance(pool_type, str):
        raise TypeError(f"sequence_pool: pool_type must be a str, not {describe(pool_type)}")
    out = helper.create_variable_for_type_inference(input.dtype)
    max_index = helper.create_variable_for_type_inference(input.dtype)
    helper.append_op(
        "sequence_pool",
        {"X": input},
        {"Out": out, "MaxIndex": max_index},
        {"pooltype": pool_type.upper(), "is_test": is_test, "pad_value": pad_value},
    )
    if pool_type == "max":
        max_index.stop_gradient = True
    return out


@layer(fluid_accepts={"input": "float32 float64"})
def sequence_first_step(input):
    """Takes the first row of each sequence.

    Args:
        input (Variable): shape [rows, ...] with sequences.

    Returns:
        Variable: shape [number of sequences, ...], same type as `input`.

    Example:
        x = fluid.data('x', [None, 8], lod_level=1)
        y = fluid.layers.sequence_first_step(x)
    """
    return sequence_pool(input, "first")


@layer(fluid_accepts={"input": "float32 float64"}, like=sequence_first_step)
def sequence_last_step(input):
    """Takes the last row of each sequence.

    Example:
        x = fluid.data('x', [None, 8], lod_level=1)
        y = fluid.layers.sequence_last_step(x)
    """
    return sequence_pool(input, "last")


@op_layer("sequence_softmax", fluid_accepts={"input": "float32 float64"}, inputs={"X": "input"})
def sequence_softmax(input: Variable, use_cudnn: bool = False, name: str | None = None) -> Attrs:
    """Computes softmax over the rows of each sequence.

    Args:
        input: shape [rows, 1] or [rows], with sequences.

    Returns:
        Variable: same shape, type and sequences as `input`.

    Example:
        x = fluid.data('x', [None, 1], lod_level=1)
        weights = fluid.layers.sequence_softmax(x)
    """


@layer("sequence_conv", fluid_accepts={"input": "float32 float64"})
def sequence_conv(
    input,
    num_filters,
    filter_size=3,
    filter_stride=1,
    padding=True,
    padding_start=None,
    bias_attr=None,
    param_attr=None,
    act=None,
    name=None,
):
    """Convolves each sequence with learned filters over neighbouring rows.

    Args:
        input (Variable): shape [rows, D] with sequences.
        num_filters (int): width of the result.
        filter_size (int): number of rows that a filter covers.
        filter_stride (int): must be 1.
        padding (bool): has no effect; rows outside the sequence always count as zeros.
        padding_start (int | None): first row that a filter covers, relative to the current row; None: the filter is
            centred.
        param_attr (ParamAttr | None): the filters, of shape [filter_size * D, num_filters].

    Returns:
        Variable: shape [rows, num_filters], same type and sequences as `input`.

    Raises:
        ValueError: `input` has fewer than 2 axes.

    Example:
        x = fluid.data('x', [None, 8], lod_level=1)
        y = fluid.layers.sequence_conv(x, num_filters=4)
    """
    helper = LayerHelper("sequence_conv", param_attr=param_attr, bias_attr=bias_attr, act=act, name=name)
    helper.takes(input=input)
    require_rank("sequence_conv", "input", input, 2)
    weight = helper.create_parameter(helper.param_attr, [filter_size * input.shape[1], num_filters], input.dtype)
    out = helper.create_variable_for_type_inference(input.dtype)
    helper.append_op(
        "sequence_conv",
        {"X": input, "Filter": weight},
        {"Out": out},
        {
            "contextStride": filter_stride,
            "contextStart": -(filter_size // 2) if padding_start is None else padding_start,
            "contextLength": filter_size,
        },
    )
    return helper.append_activation(helper.append_bias_op(out))


@layer("row_conv", fluid_accepts={"input": "float32 float64"})
def row_conv(input, future_context_size, param_attr=None, act=None):
    """Computes a weighted sum of each row and the rows that follow it (lookahead convolution).

    Args:
        input (Variable): shape [rows, D] with sequences, or [N, length, D].
        future_context_size (int): number of following rows that are added.
        param_attr (ParamAttr | None): the weights, of shape [future_context_size + 1, D].

    Returns:
        Variable: same shape, type and sequences as `input`.

    Example:
        x = fluid.data('x', [None, 8], lod_level=1)
        y = fluid.layers.row_conv(x, future_context_size=2)

    Reference:
        Amodei et al., Deep Speech 2, ICML 2016.
    """
    helper = LayerHelper("row_conv", param_attr=param_attr, act=act).takes(input=input)
    weight = helper.create_parameter(helper.param_attr, [future_context_size + 1, input.shape[-1]], input.dtype)
    out = helper.create_variable_for_type_inference(input.dtype)
    helper.append_op("row_conv", {"X": input, "Filter": weight}, {"Out": out})
    return helper.append_activation(out)


@layer("sequence_concat", fluid_accepts={"input": "int64 float32 float64"})
def sequence_concat(input, name=None):
    """Concatenates the i-th sequences of all inputs, for each i.

    Args:
        input (list[Variable]): shape [rows, ...] each, with the same number of sequences.

    Returns:
        Variable: shape [sum of the rows, ...] with the same number of sequences, the type of the inputs.

    Raises:
        TypeError: `input` is not a list, or one of its elements is not a Variable or has an unsupported element type.

    Example:
        x = fluid.data('x', [None, 8], lod_level=1)
        y = fluid.data('y', [None, 8], lod_level=1)
        z = fluid.layers.sequence_concat([x, y])
    """
    if not isinstance(input, (list, tuple)):
        raise TypeError(f"sequence_concat: input must be a list of Variables, not {input!r}")
    return _one_op("sequence_concat", {"X": input}, name=name)


@op_layer("sequence_expand", fluid_accepts={"x": "int32 int64 float32 float64"})
def sequence_expand(x: Variable, y: Variable, ref_level: int = -1, name: str | None = None) -> Attrs:
    """Repeats each row or sequence of `x` as often as the corresponding sequence of `y` has elements.

    Args:
        x: shape [rows, ...], without sequences or with one level of them.
        y: any shape and type, with sequences.
        ref_level: the level of `y` whose sequences are counted; -1: the innermost.

    Returns:
        Variable: shape [repeated rows, ...], same type as `x`.

    Example:
        x = fluid.data('x', [None, 8])
        y = fluid.data('y', [None, 1], lod_level=1)
        z = fluid.layers.sequence_expand(x, y)
    """


@op_layer("sequence_expand_as", fluid_accepts={"x": "int32 int64 float32 float64"})
def sequence_expand_as(x: Variable, y: Variable, name: str | None = None) -> Attrs:
    """Repeats row i of `x` as often as sequence i of `y` has rows.

    Args:
        x: shape [sequences of `y`, ...].
        y: any shape and type, with sequences.

    Returns:
        Variable: shape [rows of `y`, ...] with the sequences of `y`, same type as `x`.

    Example:
        x = fluid.data('x', [None, 8])
        y = fluid.data('y', [None, 1], lod_level=1)
        z = fluid.layers.sequence_expand_as(x, y)
    """


@op_layer(
    "sequence_slice",
    fluid_accepts={"input": "int32 int64 float32 float64", "offset length": "int64"},
    inputs={"X": "input"},
)
def sequence_slice(input: Variable, offset: Variable, length: Variable, name: str | None = None) -> Attrs:
    """Extracts a slice of each sequence.

    Args:
        input: shape [rows, ...] with sequences.
        offset: shape [sequences, 1]: the first row of each slice.
        length: shape [sequences, 1]: the number of rows of each slice.

    Returns:
        Variable: shape [rows, ...] with the slices as sequences, same type as `input`.

    Example:
        x = fluid.data('x', [None, 8], lod_level=1)
        offset = fluid.data('offset', [None, 1], 'int64')
        length = fluid.data('length', [None, 1], 'int64')
        y = fluid.layers.sequence_slice(x, offset, length)
    """
    offset.stop_gradient = length.stop_gradient = True
    return None


@layer("sequence_pad", fluid_accepts={"x pad_value": "int32 int64 float32 float64"})
def sequence_pad(x, pad_value, maxlen=None, name=None):
    """Pads sequences to a common length and returns them as a dense tensor.

    Args:
        x (Variable): shape [rows, ...] with sequences.
        pad_value (Variable): shape [1] or the shape of a row; same type as `x`.
        maxlen (int | None): the common length; None: the length of the longest sequence.

    Returns:
        tuple[Variable, Variable]: the padded sequences, shape [sequences, length, ...], same type as `x`, and their
            lengths before padding, shape [sequences], int64.

    Example:
        x = fluid.data('x', [None, 8], lod_level=1)
        padded, lengths = fluid.layers.sequence_pad(x, fluid.layers.zeros([1], 'float32'))
    """
    helper = LayerHelper("sequence_pad", name=name).takes(x=x, pad_value=pad_value)
    out = helper.create_variable_for_type_inference(x.dtype)
    length = helper.create_variable_for_type_inference("int64", stop_gradient=True)
    pad_value.stop_gradient = True
    helper.append_op(
        "sequence_pad",
        {"X": x, "PadValue": pad_value},
        {"Out": out, "Length": length},
        {"padded_length": -1 if maxlen is None else maxlen},
    )
    return out, length


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


@op_layer("sequence_reshape", fluid_accepts={"input": "int32 int64 float32 float64"}, inputs={"X": "input"})
def sequence_reshape(input: Variable, new_dim: int) -> Attrs:
    """Changes the width of the rows; sequences become longer or shorter accordingly.

    Args:
        input: shape [rows, D] with sequences.
        new_dim: the new width; it must divide the number of elements of each sequence.

    Returns:
        Variable: shape [rows * D / new_dim, new_dim], same type as `input`.

    Example:
        x = fluid.data('x', [None, 8], lod_level=1)
        y = fluid.layers.sequence_reshape(x, new_dim=4)
    """


@op_layer(
    "sequence_scatter",
    fluid_accepts={"input updates": "int32 int64 float32 float64", "index": "int32 int64"},
    inputs={"X": "input", "Ids": "index"},
)
def sequence_scatter(input: Variable, index: Variable, updates: Variable, name: str | None = None) -> Attrs:
    """Adds the updates of sequence i to elements of row i, for each i.

    Args:
        input: shape [N, D].
        index: shape [updates, 1] with N sequences: positions in the row.
        updates: shape [updates, 1] with the same sequences, same type as `input`.

    Returns:
        Variable: shape [N, D], same type as `input`.

    Example:
        x = fluid.data('x', [None, 6])
        index = fluid.data('index', [None, 1], 'int64', lod_level=1)
        updates = fluid.data('updates', [None, 1], lod_level=1)
        y = fluid.layers.sequence_scatter(x, index, updates)
    """


@op_layer("sequence_enumerate", typed="input", inputs={"X": "input"}, stop_gradient=True)
def sequence_enumerate(input: Variable, win_size: int, pad_value: int = 0, name: str | None = None) -> Attrs:
    """Collects, for each row, the window of `win_size` ids that begins at the row.

    Args:
        input: shape [rows, 1] with sequences.
        pad_value: replaces ids beyond the end of the sequence.

    Returns:
        Variable: shape [rows, win_size], same type and sequences as `input`.

    Example:
        x = fluid.data('x', [None, 1], 'int64', lod_level=1)
        windows = fluid.layers.sequence_enumerate(x, win_size=2)
    """


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


@op_layer("sequence_reverse", fluid_accepts={"x": "int8 int32 int64 float32 float64"}, output="Y")
def sequence_reverse(x: Variable, name: str | None = None) -> Attrs:
    """Reverses the rows of each sequence.

    Args:
        x: shape [rows, ...] with sequences.

    Returns:
        Variable: same shape, type and sequences as `x`.

    Example:
        x = fluid.data('x', [None, 8], lod_level=1)
        y = fluid.layers.sequence_reverse(x)
    """


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
def lod_append(x, level):
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
    if isinstance(level, Variable):
        return _one_op("lod_reset", {"X": x, "Y": level}, {"append": True}, layer="lod_append")
    if not isinstance(level, (list, tuple)):
        raise ValueError(f"lod_append: level must be a list, a tuple or a variable, not {level!r}")
    return _one_op("lod_reset", {"X": x}, {"append": True, "target_lod": list(level)}, layer="lod_append")


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
        "kernels": _pair(filter_size, "filter_size"),
        "strides": _pair(stride, "stride"),
        "paddings": paddings * 2 if len(paddings) == 2 else paddings,
        "out_stride": None if input_image_size is None else _pair(out_stride, "out_stride"),
    }


@layer("edit_distance", fluid_accepts={"input label": "int64"})
def edit_distance(input, label, normalized=True, ignored_tokens=None, input_length=None, label_length=None):
    """Computes the Levenshtein distance between sequences of tokens.

    Args:
        input (Variable): shape [rows, 1] with sequences, or [N, length].
        label (Variable): the reference tokens, in the same form, with the same number of sequences.
        normalized (bool): divide each distance by the length of the label.
        ignored_tokens (list[int] | None): tokens that are removed first.
        input_length (Variable | None): shape [N], int64, for inputs without sequences.
        label_length (Variable | None): shape [N], int64, for labels without sequences.

    Returns:
        tuple[Variable, Variable]: the distances, shape [sequences, 1], float32, and the number of sequences, shape
            [1], int64.

    Example:
        hypothesis = fluid.data('h', [None, 1], 'int64', lod_level=1)
        reference = fluid.data('r', [None, 1], 'int64', lod_level=1)
        distance, count = fluid.layers.edit_distance(hypothesis, reference)
    """
    helper = LayerHelper("edit_distance")
    if ignored_tokens:
        erased = []
        for tokens in (input, label):
            erased.append(helper.create_variable_for_type_inference("int64"))
            helper.append_op("sequence_erase", {"X": tokens}, {"Out": erased[-1]}, {"tokens": list(ignored_tokens)})
        input, label = erased
    inputs = {"Hyps": input, "Refs": label}
    if input_length is not None and label_length is not None:
        inputs.update(HypsLength=input_length, RefsLength=label_length)
    out = helper.create_variable_for_type_inference("int64")
    count = helper.create_variable_for_type_inference("int64")
    helper.append_op("edit_distance", inputs, {"Out": out, "SequenceNum": count}, {"normalized": normalized})
    return out, count


@layer()
def ctc_greedy_decoder(input, blank, input_length=None, padding_value=0, name=None):
    """Decodes greedily: takes the most likely token of each row, merges repetitions and removes blanks.

    Args:
        input (Variable): the probabilities, shape [rows, tokens + 1] with sequences, or [N, length, tokens + 1];
            float32 or float64.
        blank (int): index of the blank token.
        input_length (Variable | None): shape [N, 1], int64, for inputs without sequences.
        padding_value (int): pads the results of inputs without sequences.

    Returns:
        Variable | tuple[Variable, Variable]: the tokens, shape [rows, 1] with sequences, int64; with `input_length`,
        the tokens, shape [N, length], and the number of tokens of each sequence, shape [N, 1], int64.

    Example:
        x = fluid.data('x', [None, 8], lod_level=1)
        tokens = fluid.layers.ctc_greedy_decoder(x, blank=0)

    Reference:
        Graves et al., Connectionist Temporal Classification, ICML 2006.
    """
    helper = LayerHelper("ctc_greedy_decoder", name=name)
    _, labels = topk(input, k=1)
    out = helper.create_variable_for_type_inference("int64")
    attrs = {"merge_repeated": True, "blank": blank}
    if input_length is None:
        helper.append_op("ctc_align", {"Input": labels}, {"Output": out}, attrs)
        return out
    length = helper.create_variable_for_type_inference("int64")
    labels = squeeze(labels, [2])
    helper.append_op(
        "ctc_align",
        {"Input": labels, "InputLength": input_length},
        {"Output": out, "OutputLength": length},
        dict(attrs, padding_value=padding_value),
    )
    return out, length


@layer("crf_decoding", fluid_accepts={"input": "float32 float64"})
def crf_decoding(input, param_attr, label=None, length=None):
    """Finds the most likely path of tags with the transition weights of linear_chain_crf.

    With `label`, the result tells where the path agrees with the labels.

    Args:
        input (Variable): the emissions, shape [rows, tags] with sequences, or [N, length, tags] with `length`.
        param_attr (ParamAttr): names the transition weights.
        label (Variable | None): shape [rows, 1] or [N, length], int64; the correct tags.
        length (Variable | None): shape [N], int64; the lengths of padded inputs.

    Returns:
        Variable: shape [rows, 1] or [N, length], int64; the tags, or, with `label`, 1 where the path is correct and 0
            elsewhere.

    Raises:
        ValueError: the program has no parameter with the name in `param_attr`.

    Example:
        emission = fluid.data('emission', [None, 3], lod_level=1)
        label = fluid.data('label', [None, 1], 'int64', lod_level=1)
        loss = fluid.layers.linear_chain_crf(emission, label, param_attr=fluid.ParamAttr(name='crf.w'))
        path = fluid.layers.crf_decoding(emission, param_attr=fluid.ParamAttr(name='crf.w'))
    """
    helper = LayerHelper("crf_decoding", param_attr=param_attr)
    inputs = {"Emission": input, "Transition": helper.get_parameter(helper.param_attr.name)}
    if label is not None:
        inputs["Label"] = label
    if length is not None:
        inputs["Length"] = length
    path = helper.create_variable_for_type_inference("int64")
    helper.append_op("crf_decoding", inputs, {"ViterbiPath": path})
    return path
