"""Losses for large numbers of classes, which evaluate only some of the classes."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING

import numpy

from penstock._src.ir.variable import Variable
from penstock._src.layers.decorators import layer
from penstock._src.layers.helper import LayerHelper, require_rank
from penstock._src.parameters.initializer import NumpyArrayInitializer
from penstock._src.parameters.param_attr import ParamAttr

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from penstock._src.ir.variable import Variable


_SAMPLERS = {"uniform": 0, "log_uniform": 1, "custom_dist": 2}


@layer("nce", fluid_accepts={"input": "float32 float64", "label": "int64"})
def nce(
    input: Variable,
    label: Variable,
    num_total_classes: int,
    sample_weight: Variable | None = None,
    param_attr: ParamAttr | None = None,
    bias_attr: ParamAttr | bool | None = None,
    num_neg_samples: int | None = None,
    name: str | None = None,
    sampler: str = "uniform",
    custom_dist: Sequence[float] | None = None,
    seed: int = 0,
    is_sparse: bool = False,
) -> Variable:
    """Computes the noise-contrastive estimation loss of the true classes against randomly drawn noise classes.

    Args:
        input (Variable): shape [N, D].
        label (Variable): the true classes, shape [N, number of true classes].
        num_total_classes (int): number of classes.
        sample_weight (Variable | None): the weight of each example, shape [N, 1], same type as `input`.
        param_attr (ParamAttr | None): the weights, of shape [num_total_classes, D].
        bias_attr (ParamAttr | bool | None): the bias, of shape [num_total_classes, 1]; False: no bias.
        num_neg_samples (int | None): number of noise classes drawn for each example; None: 10.
        sampler (str): 'uniform', 'log_uniform' or 'custom_dist'.
        custom_dist (list[float] | None): probability of each class, for 'custom_dist'.
        seed (int): seed of the drawn classes; 0: different classes in each run.
        is_sparse (bool): whether the gradient of the weights is selected rows.

    Returns:
        Variable: the loss divided by num_neg_samples + 1, shape [N, 1], same type as `input`.

    Raises:
        ValueError: `sampler` is unknown, `custom_dist` is missing or has the wrong length, or `input` has fewer than 2
            axes.

    Example:
        x = fluid.data('x', [None, 16])
        label = fluid.data('label', [None, 1], 'int64')
        loss = fluid.layers.nce(x, label, num_total_classes=1000, num_neg_samples=5)

    Reference:
        Gutmann and Hyvärinen, Noise-contrastive estimation, AISTATS 2010.
    """
    if sampler not in _SAMPLERS:
        raise ValueError(f"sampler must be one of {', '.join(sorted(_SAMPLERS))}, not {sampler!r}")
    if sampler == "custom_dist" and custom_dist is None:
        raise ValueError("sampler custom_dist needs custom_dist, the probability of each class")
    helper = LayerHelper("nce", param_attr=param_attr, bias_attr=bias_attr, name=name).takes(input=input, label=label)
    require_rank("nce", "input", input, 2)
    weight = helper.create_parameter(helper.param_attr, [num_total_classes, input.shape[1]], input.dtype)
    inputs = {"Input": input, "Label": label, "Weight": weight}
    if helper.bias_attr:
        inputs["Bias"] = helper.create_parameter(helper.bias_attr, [num_total_classes, 1], input.dtype, is_bias=True)
    if sample_weight is not None:
        inputs["SampleWeight"] = sample_weight
    cost = helper.create_variable_for_type_inference(input.dtype)
    logits = helper.create_variable_for_type_inference(input.dtype)
    labels = helper.create_variable_for_type_inference(label.dtype)
    if custom_dist is not None and sampler == "custom_dist":
        inputs.update(_alias_tables(helper, custom_dist, num_total_classes))
    count = 10 if num_neg_samples is None else operator.index(num_neg_samples)
    helper.append_op(
        "nce",
        inputs,
        {"Cost": cost, "SampleLogits": logits, "SampleLabels": labels},
        {
            "num_total_classes": num_total_classes,
            "num_neg_samples": count,
            "seed": seed,
            "sampler": _SAMPLERS[sampler],
            "is_sparse": is_sparse,
            "remote_prefetch": is_sparse,
        },
    )
    return cost / (count + 1)


def _alias_tables(helper: LayerHelper, custom_dist: Sequence[float], classes: int) -> dict[str, Variable]:
    """Returns the tables of the alias method (Walker, 1977): entry i draws class i with the probability of the entry,
    and the alias of i otherwise."""
    if len(custom_dist) != classes:
        raise ValueError(f"custom_dist has {len(custom_dist)} probabilities for {classes} classes")
    shares = [float(probability) * classes for probability in custom_dist]
    aliases = [-1] * classes
    small = [i for i, share in enumerate(shares) if share < 1]
    large = [i for i, share in enumerate(shares) if share > 1]
    while small and large:
        low, high = small.pop(), large.pop()
        aliases[low] = high
        shares[high] -= 1 - shares[low]
        if shares[high] != 1:
            (small if shares[high] < 1 else large).append(high)
    for rest in small + large:  # left over because of rounding
        shares[rest] = 1.0

    def constant(values: Any, dtype: str) -> Variable:
        values = numpy.array(values, dtype)
        parameter: Variable = helper.create_parameter(
            ParamAttr(), list(values.shape), dtype, default_initializer=NumpyArrayInitializer(values)
        )
        parameter.stop_gradient = True
        return parameter

    return {
        "CustomDistProbs": constant(custom_dist, "float32"),
        "CustomDistAlias": constant(aliases, "int32"),
        "CustomDistAliasProbs": constant(shares, "float32"),
    }


@layer(fluid_accepts={"input": "float32 float64", "label": "int64"})
def hsigmoid(
    input: Variable,
    label: Variable,
    num_classes: int,
    param_attr: ParamAttr | None = None,
    bias_attr: ParamAttr | bool | None = None,
    name: str | None = None,
    path_table: Variable | None = None,
    path_code: Variable | None = None,
    is_custom: bool = False,
    is_sparse: bool = False,
) -> Variable:
    """Computes the hierarchical sigmoid loss: the log loss of the decisions on a class's path through a binary tree.

    Args:
        input: shape [N, D].
        label: the true classes, shape [N, 1].
        num_classes: number of classes, or with `is_custom` the number of inner nodes; at least 2.
        param_attr: the weights, of shape [inner nodes, D].
        bias_attr: the bias, of shape [inner nodes, 1]; False: no bias.
        path_table: the nodes from the root to the class, padded with -1, shape [N, depth], int64.
        path_code: 0 or 1 for each node, padded with -1, shape [N, depth], int64.
        is_custom: True: the paths are given; False: the tree is a complete binary tree.
        is_sparse: whether the gradient of the weights is selected rows.

    Returns:
        Variable: shape [N, 1], same type as `input`.

    Raises:
        ValueError: paths are missing, or are given without `is_custom`, there are fewer than 2 classes, or `input` has
            fewer than 2 axes.

    Example:
        x = fluid.data('x', [None, 16])
        label = fluid.data('label', [None, 1], 'int64')
        loss = fluid.layers.hsigmoid(x, label, num_classes=1000)

    Reference:
        Morin and Bengio, Hierarchical Probabilistic Neural Network Language Model, AISTATS 2005.
    """
    if is_custom and (path_table is None or path_code is None):
        raise ValueError("is_custom needs path_table and path_code")
    if not is_custom and (path_table is not None or path_code is not None):
        raise ValueError("path_table and path_code need is_custom=True")
    if num_classes is None or num_classes < 2:
        raise ValueError(f"num_classes must be at least 2, not {num_classes!r}")
    helper = LayerHelper("hierarchical_sigmoid", param_attr=param_attr, bias_attr=bias_attr, name=name)
    helper.takes(input=input)
    require_rank("hsigmoid", "input", input, 2)
    nodes = num_classes if is_custom else num_classes - 1
    out = helper.create_variable_for_type_inference(input.dtype)
    before = helper.create_variable_for_type_inference(input.dtype)
    weight = helper.create_parameter(helper.param_attr, [nodes, input.shape[1]], input.dtype)
    inputs = {"X": input, "W": weight, "Label": label}
    if is_custom:
        inputs.update(PathTable=path_table, PathCode=path_code)
    if helper.bias_attr:
        inputs["Bias"] = helper.create_parameter(helper.bias_attr, [nodes, 1], input.dtype, is_bias=True)
    outputs = {"Out": out, "PreOut": before}
    if helper.main_program.current_block().idx == 0:
        outputs["W_Out"] = weight  # in a branch or loop, the block would count as overwriting the weight
    helper.append_op(
        "hierarchical_sigmoid",
        inputs,
        outputs,
        {"num_classes": num_classes, "is_sparse": is_sparse, "remote_prefetch": is_sparse},
    )
    return out


def sampled_softmax_with_cross_entropy(
    logits: Variable,
    label: Variable,
    num_samples: int,
    num_true: int = 1,
    remove_accidental_hits: bool = True,
    use_customized_samples: bool = False,
    customized_samples: Variable | None = None,
    customized_probabilities: Variable | None = None,
    seed: int = 0,
) -> Variable:
    """Computes the cross entropy of a softmax over the true classes and some randomly drawn classes.

    Class c is drawn with probability log((c + 2) / (c + 1)) / log(classes + 1), without replacement, so classes should
    be sorted by descending frequency. The logarithm of the probability of being drawn is subtracted from each logit.

    Args:
        logits (Variable): scores of all classes, float32 or float64, shape [rows, classes].
        label (Variable): the true classes, int64, shape [rows, num_true].
        num_samples (int): number of classes that are drawn for all rows together.
        num_true (int): number of true classes of a row.
        remove_accidental_hits (bool): whether drawn classes that are true classes of a row are excluded from the row's
            softmax.
        use_customized_samples (bool): whether the samples are given by the next two arguments.
        customized_samples (Variable): true classes and samples, int64, shape [rows, num_true + num_samples].
        customized_probabilities (Variable): the probability of each, same shape as `customized_samples`, same type as
            `logits`.
        seed (int): seed of the draws; 0: different classes in each run.

    Returns:
        Variable: the cost of each row, shape [rows, 1], same type as `logits`.

    Raises:
        TypeError: `logits`, `label`, `customized_samples` or `customized_probabilities` is not a Variable.
        penstock.ProgramError: `num_samples` exceeds the number of classes, or the shapes are incompatible.

    Example:
        words, right = fluid.data('words', [None, 32]), fluid.data('right', [None, 1], 'int64')
        scores = fluid.layers.fc(words, 1000)
        cost = fluid.layers.sampled_softmax_with_cross_entropy(scores, right, num_samples=20)

    Reference:
        S. Jean, K. Cho, R. Memisevic, Y. Bengio: "On Using Very Large Target Vocabulary for Neural Machine
        Translation", ACL 2015.
    """
    helper = LayerHelper("sample_logits").takes(logits=logits, label=label)
    inputs: dict[str, Any] = {"Logits": logits, "Labels": label}
    samples, probabilities = customized_samples, customized_probabilities
    if use_customized_samples:
        helper.takes(customized_samples=samples, customized_probabilities=probabilities)
        inputs.update(CustomizedSamples=samples, CustomizedProbabilities=probabilities)
    else:
        samples = helper.create_variable_for_type_inference("int64")
        probabilities = helper.create_variable_for_type_inference(logits.dtype)
    sampled, places, one_hot, logits_dim, labels_dim = (
        helper.create_variable_for_type_inference(dtype)
        for dtype in (logits.dtype, "int64", logits.dtype, logits.dtype, label.dtype)
    )
    helper.append_op(
        "sample_logits",
        inputs,
        {
            "Samples": samples,
            "Probabilities": probabilities,
            "SampledLabels": places,
            "SampledLogits": sampled,
            "LogitsDim": logits_dim,
            "LabelsDim": labels_dim,
        },
        {
            "use_customized_samples": use_customized_samples,
            "uniq": True,
            "remove_accidental_hits": remove_accidental_hits,
            "num_samples": num_samples,
            "seed": seed,
        },
    )
    loss, softmax = (helper.create_variable_for_type_inference(logits.dtype) for _ in range(2))
    helper.append_op("one_hot", {"X": places}, {"Out": one_hot}, {"depth": num_samples + 1})
    helper.append_op(
        "softmax_with_cross_entropy",
        {"Logits": sampled, "Label": one_hot},
        {"Softmax": softmax, "Loss": loss},
        {"soft_label": True, "ignore_index": 0, "numeric_stable_mode": False},
    )
    return loss / num_true
