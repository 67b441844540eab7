"""Losses and metrics of labelled sequences: conditional random fields, temporal classification, chunks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock._src.ir.variable import Variable
from penstock._src.layers.decorators import Attrs, layer, op_layer_with_results
from penstock._src.layers.helper import LayerHelper, require_rank
from penstock._src.layers.nn import topk
from penstock._src.layers.reshaping import squeeze

if TYPE_CHECKING:
    from collections.abc import Sequence

    from penstock._src.parameters.param_attr import ParamAttr


@layer("linear_chain_crf", fluid_accepts={"input": "float32 float64", "label": "int64"})
def linear_chain_crf(
    input: Variable, label: Variable, param_attr: ParamAttr | None = None, length: Variable | None = None
) -> Variable:
    """Computes the negative log-likelihood of tags in a linear-chain conditional random field.

    Creates the parameter of transition weights, shape [tags + 2, tags]: row 0 holds the weights of starting with each
    tag, row 1 those of ending with it, row 2 + a those of following tag a. `crf_decoding` uses the same parameter.

    Args:
        input (Variable): scores of each tag: shape [rows, tags] with one level of sequences, or [sequences, steps,
            tags] with `length`.
        label (Variable): the correct tags: shape [rows, 1] in the same sequences, or [sequences, steps].
        param_attr (ParamAttr): attributes of the transition weights.
        length (Variable): the number of steps of each padded sequence, int64, shape [sequences] or [sequences, 1].

    Returns:
        Variable: the cost of each sequence, shape [sequences, 1], same type as `input`.

    Raises:
        ValueError: `input` has too few axes.
        penstock.ProgramError: the shapes of the inputs are incompatible.

    Example:
        scores = fluid.data('scores', [None, 5], lod_level=1)
        tags = fluid.data('tags', [None, 1], 'int64', lod_level=1)
        cost = fluid.layers.linear_chain_crf(scores, tags, fluid.ParamAttr(name='crfw'))
        path = fluid.layers.crf_decoding(scores, fluid.ParamAttr(name='crfw'))
    """
    helper = LayerHelper("linear_chain_crf", param_attr=param_attr).takes(input=input, label=label)
    require_rank("linear_chain_crf", "input", input, 2 if length is None else 3)
    tags = input.shape[1 if length is None else 2]
    weights = helper.create_parameter(helper.param_attr, [tags + 2, tags], input.dtype)
    slots = ("Alpha", "EmissionExps", "TransitionExps", "LogLikelihood")
    outputs = {slot: helper.create_variable_for_type_inference(input.dtype) for slot in slots}
    inputs = {"Emission": input, "Transition": weights, "Label": label}
    if length is not None:
        inputs["Length"] = length
    helper.append_op("linear_chain_crf", inputs, outputs)
    return outputs["LogLikelihood"]


@layer("warpctc", fluid_accepts={"input": "float32 float64", "label": "int32", "input_length label_length": "int64"})
def warpctc(
    input: Variable,
    label: Variable,
    blank: int = 0,
    norm_by_times: bool = False,
    input_length: Variable | None = None,
    label_length: Variable | None = None,
) -> Variable:
    """Computes the connectionist temporal classification (CTC) loss.

    Args:
        input (Variable): scores of each class, including the blank, before softmax: shape [rows, classes] with one
            level of sequences, or [steps, sequences, classes] with the two lengths.
        label (Variable): the target classes of each sequence: shape [rows, 1] with one level of sequences, or
            [sequences, elements].
        blank (int): index of the blank class.
        norm_by_times (bool): whether the gradient is divided by the number of steps.
        input_length (Variable): the number of steps of each padded sequence, shape [sequences].
        label_length (Variable): the number of elements of each padded label, shape [sequences].

    Returns:
        Variable: the cost of each sequence, shape [sequences, 1], same type as `input`; 0 if the sequence has too few
        steps for its label.

    Raises:
        penstock.ProgramError: the shapes of the inputs are incompatible.

    Example:
        scores = fluid.data('scores', [None, 30], lod_level=1)
        text = fluid.data('text', [None, 1], 'int32', lod_level=1)
        cost = fluid.layers.warpctc(scores, text, blank=29)

    Reference:
        A. Graves, S. Fernandez, F. Gomez, J. Schmidhuber: "Connectionist Temporal Classification", ICML 2006.
    """
    helper = LayerHelper("warpctc").takes(input=input, label=label)
    inputs = {"Logits": input, "Label": label}
    if input_length is not None and label_length is not None:
        inputs.update(LogitsLength=input_length, LabelLength=label_length)
    loss = helper.create_variable_for_type_inference(input.dtype)
    gradient = helper.create_variable_for_type_inference(input.dtype)
    helper.append_op(
        "warpctc", inputs, {"WarpCTCGrad": gradient, "Loss": loss}, {"blank": blank, "norm_by_times": norm_by_times}
    )
    return loss


@op_layer_with_results(
    "chunk_eval",
    "Precision Recall F1-Score NumInferChunks NumLabelChunks NumCorrectChunks",
    fluid_accepts={"input label": "int64"},
    inputs={"Inference": "input", "SeqLength": "seq_length"},
)
def chunk_eval(
    input: Variable,
    label: Variable,
    chunk_scheme: str,
    num_chunk_types: int,
    excluded_chunk_types: list[int] | None = None,
    seq_length: Variable | None = None,
) -> Attrs:
    """Computes precision, recall and F1 score of chunk detection.

    A label is type * tags + tag; the label num_chunk_types * tags marks elements outside all chunks. Scheme 'IOB' has
    the tags begin, inside; 'IOE' inside, end; 'IOBES' begin, inside, end, single; 'plain' has one tag.

    Args:
        input: the predicted labels: shape [rows, 1] with one level of sequences, or [sequences, steps] with
            `seq_length`.
        label: the correct labels, in the same form.
        chunk_scheme: 'IOB', 'IOE', 'IOBES' or 'plain'.
        num_chunk_types: number of chunk types.
        excluded_chunk_types: chunk types that are not counted.
        seq_length: the number of steps of each padded sequence, int64, shape [sequences].

    Returns:
        tuple: precision, recall and F1 score, float32, then the numbers of predicted, labelled and correctly predicted
        chunks, int64; each a Variable of shape [1]. `metrics.ChunkEvaluator` accumulates the numbers over batches.

    Raises:
        penstock.ProgramError: the scheme is unknown, or the shapes are incompatible.

    Example:
        found = fluid.data('found', [None, 1], 'int64', lod_level=1)
        right = fluid.data('right', [None, 1], 'int64', lod_level=1)
        precision, recall, f1, *counts = fluid.layers.chunk_eval(found, right, 'IOB', num_chunk_types=3)
    """
    return {"excluded_chunk_types": excluded_chunk_types or []}


@layer("edit_distance", fluid_accepts={"input label": "int64"})
def edit_distance(
    input: Variable,
    label: Variable,
    normalized: bool = True,
    ignored_tokens: Sequence[int] | None = None,
    input_length: Variable | None = None,
    label_length: Variable | None = None,
) -> tuple[Variable, Variable]:
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
def ctc_greedy_decoder(
    input: Variable, blank: int, input_length: Variable | None = None, padding_value: int = 0, name: str | None = None
) -> Variable | tuple[Variable, Variable]:
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
def crf_decoding(
    input: Variable, param_attr: ParamAttr, label: Variable | None = None, length: Variable | None = None
) -> Variable:
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
