"""Losses and metrics of labelled sequences: conditional random fields, temporal classification, chunks."""

from penstock._src.layers.decorators import layer
from penstock._src.layers.helper import LayerHelper, require_rank

__all__ = ["chunk_eval", "linear_chain_crf", "warpctc"]


@layer("linear_chain_crf", fluid_accepts={"input": "float32 float64", "label": "int64"})
def linear_chain_crf(input, label, param_attr=None, length=None):
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
def warpctc(input, label, blank=0, norm_by_times=False, input_length=None, label_length=None):
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


@layer("chunk_eval", fluid_accepts={"input label": "int64"})
def chunk_eval(input, label, chunk_scheme, num_chunk_types, excluded_chunk_types=None, seq_length=None):
    """Computes precision, recall and F1 score of chunk detection.

    A label is type * tags + tag; the label num_chunk_types * tags marks elements outside all chunks. Scheme 'IOB' has
    the tags begin, inside; 'IOE' inside, end; 'IOBES' begin, inside, end, single; 'plain' has one tag.

    Args:
        input (Variable): the predicted labels: shape [rows, 1] with one level of sequences, or [sequences, steps] with
            `seq_length`.
        label (Variable): the correct labels, in the same form.
        chunk_scheme (str): 'IOB', 'IOE', 'IOBES' or 'plain'.
        num_chunk_types (int): number of chunk types.
        excluded_chunk_types (list[int]): chunk types that are not counted.
        seq_length (Variable): the number of steps of each padded sequence, int64, shape [sequences].

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
    helper = LayerHelper("chunk_eval").takes(input=input, label=label)
    floats, counts = ("Precision", "Recall", "F1-Score"), ("NumInferChunks", "NumLabelChunks", "NumCorrectChunks")
    outputs = {slot: helper.create_variable_for_type_inference("float32") for slot in floats}
    outputs.update((slot, helper.create_variable_for_type_inference("int64")) for slot in counts)
    inputs = {"Inference": input, "Label": label}
    if seq_length is not None:
        inputs["SeqLength"] = seq_length
    helper.append_op(
        "chunk_eval",
        inputs,
        outputs,
        {
            "num_chunk_types": num_chunk_types,
            "chunk_scheme": chunk_scheme,
            "excluded_chunk_types": excluded_chunk_types or [],
        },
    )
    return tuple(outputs.values())
