"""Losses of examples, most with one value per example."""

from __future__ import annotations

from penstock._src.ir.types import VarType, float_attr
from penstock._src.ir.variable import Variable
from penstock._src.layers.decorators import Attrs, layer, op_layer, op_layer_with_results
from penstock._src.layers.helper import LayerHelper


@layer("cross_entropy", typed="input")
def cross_entropy(input: Variable, label: Variable, soft_label: bool = False, ignore_index: int = -100) -> Variable:
    """Computes the cross entropy, -log of the probability of the label.

    Args:
        input (Variable): the probabilities, such as the result of softmax, shape [..., D].
        label (Variable): the class indices, shape [..., 1], int64; with `soft_label`, a probability for each class,
            same shape and type as `input`.
        soft_label (bool): whether labels are distributions.
        ignore_index (int): examples of this class have loss 0; used for class indices only.

    Returns:
        Variable: shape [..., 1], same type as `input`.

    Example:
        probabilities = fluid.layers.softmax(fluid.data('x', [None, 10]))
        label = fluid.data('label', [None, 1], 'int64')
        loss = fluid.layers.mean(fluid.layers.cross_entropy(probabilities, label))
    """
    if not soft_label:
        return _cross_entropy2(input, label, ignore_index)
    helper = LayerHelper("cross_entropy").takes(input=input)
    out = helper.create_variable_for_type_inference(input.dtype)
    helper.append_op(
        "cross_entropy",
        {"X": input, "Label": label},
        {"Y": out},
        {"soft_label": soft_label, "ignore_index": ignore_index},
    )
    return out


def _cross_entropy2(input: Variable, label: Variable, ignore_index: int) -> Variable:
    helper = LayerHelper("cross_entropy2").takes(input=input)
    out = helper.create_variable_for_type_inference(input.dtype)
    xshape = helper.create_variable_for_type_inference(input.dtype)
    match_x = helper.create_variable_for_type_inference(input.dtype)
    helper.append_op(
        "cross_entropy2",
        {"X": input, "Label": label},
        {"Y": out, "MatchX": match_x, "XShape": xshape},
        {"ignore_index": ignore_index},
    )
    return out


@op_layer_with_results(
    "softmax_with_cross_entropy", "Loss Softmax", outputs="Softmax Loss", returned_if="return_softmax"
)
def softmax_with_cross_entropy(
    logits: Variable,
    label: Variable,
    soft_label: bool = False,
    ignore_index: int = -100,
    numeric_stable_mode: bool = True,
    return_softmax: bool = False,
    axis: int = -1,
) -> Attrs:
    """Computes softmax and cross entropy in one numerically stable op.

    Args:
        logits: shape [..., D] with the classes at `axis`.
        label: the class indices, the shape of `logits` with extent 1 at `axis`, int64; with `soft_label`, a probability
            for each class, same shape and type as `logits`.
        soft_label: whether labels are distributions.
        ignore_index: examples of this class have loss 0; used for class indices only.
        numeric_stable_mode: has no effect: the computation is always stable.
        return_softmax: return the probabilities too.
        axis: the axis of the classes; negative: counted from the end.

    Returns:
        Variable | tuple[Variable, Variable]: the loss, the shape of `logits` with extent 1 at `axis`; with
            `return_softmax`, also the probabilities, same shape as `logits`. Both have the type of `logits`.

    Example:
        logits = fluid.data('x', [None, 10])
        label = fluid.data('label', [None, 1], 'int64')
        loss = fluid.layers.softmax_with_cross_entropy(logits, label)
        assert loss.shape == (-1, 1)
    """


@layer(fluid_accepts={"input label": "float32 float64"})
def square_error_cost(input: Variable, label: Variable) -> Variable:
    """Computes (input - label) ** 2, element by element.

    Args:
        label (Variable): same shape and type as `input`.

    Returns:
        Variable: same shape and type as `input`.

    Example:
        x = fluid.data('x', [None, 1])
        y = fluid.data('y', [None, 1])
        loss = fluid.layers.mean(fluid.layers.square_error_cost(x, y))
    """
    helper = LayerHelper("square_error_cost").takes(input=input)
    difference = helper.create_variable_for_type_inference(input.dtype)
    helper.append_op("elementwise_sub", {"X": input, "Y": label}, {"Out": difference})
    out = helper.create_variable_for_type_inference(input.dtype)
    helper.append_op("square", {"X": difference}, {"Out": out})
    return out


@op_layer(
    "log_loss",
    fluid_accepts={"input label": "float32 float64"},
    inputs={"Predicted": "input", "Labels": "label"},
    output="Loss",
)
def log_loss(input: Variable, label: Variable, epsilon: float = 0.0001, name: str | None = None) -> Attrs:
    """Computes -label * log(input + epsilon) - (1 - label) * log(1 - input + epsilon).

    Args:
        input: shape [N, 1], probabilities.
        label: same shape and type as `input`; 0 or 1.

    Returns:
        Variable: shape [N, 1], same type as `input`.

    Example:
        p = fluid.layers.sigmoid(fluid.data('x', [None, 1]))
        label = fluid.data('label', [None, 1])
        loss = fluid.layers.log_loss(p, label)
    """


@op_layer("sigmoid_cross_entropy_with_logits", typed="x")
def sigmoid_cross_entropy_with_logits(
    x: Variable, label: Variable, ignore_index: int = -100, name: str | None = None, normalize: bool = False
) -> Attrs:
    """Computes the cross entropy of sigmoid(x), element by element, in a numerically stable way.

    Args:
        x: the logits, any shape.
        label: the target probabilities, same shape and type as `x`.
        ignore_index: elements with this label have loss 0.

    Example:
        x = fluid.data('x', [None, 3])
        label = fluid.data('label', [None, 3])
        loss = fluid.layers.sigmoid_cross_entropy_with_logits(x, label)
    """


@op_layer(
    "huber_loss",
    fluid_accepts={"input label": "float32 float64"},
    inputs={"X": "input", "Y": "label"},
    outputs="Residual Out",
)
def huber_loss(input: Variable, label: Variable, delta: float) -> Attrs:
    """Computes the Huber loss: quadratic in the error r up to `delta`, linear beyond it.

        r ** 2 / 2 if |r| <= delta, else delta * (|r| - delta / 2), where r = label - input

    Args:
        input: shape [N, 1].
        label: same shape and type as `input`.
        delta: the error above which the loss is linear.

    Returns:
        Variable: shape [N, 1], same type as `input`.

    Example:
        x = fluid.data('x', [None, 1])
        y = fluid.data('y', [None, 1])
        loss = fluid.layers.huber_loss(x, y, delta=1.0)

    Reference:
        Huber, Robust Estimation of a Location Parameter, Annals of Mathematical Statistics 1964.
    """


@op_layer("one_hot", typed="input", inputs={"X": "input", "depth_tensor": "depth"}, stop_gradient=True)
def one_hot(input: Variable, depth: int | Variable, allow_out_of_range: bool = False) -> Attrs:
    """Converts class indices to one-hot rows, with 1 at the index and 0 elsewhere.

    Args:
        input: the class indices, shape [..., 1].
        depth: length of a row; a Variable is int32 of shape [1].
        allow_out_of_range: an index outside [0, depth) becomes a row of zeros instead of an error.

    Returns:
        Variable: shape [..., depth], float32, with stop_gradient set.

    Example:
        label = fluid.data('label', [None, 1], 'int64')
        assert fluid.layers.one_hot(label, depth=10).shape == (-1, 10)
    """


@op_layer("label_smooth", fluid_accepts={"label": "float32 float64"}, inputs={"X": "label"})
def label_smooth(
    label: Variable,
    prior_dist: Variable | None = None,
    epsilon: float = 0.1,
    dtype: str | VarType = "float32",
    name: str | None = None,
) -> Attrs:
    """Smooths one-hot labels: (1 - epsilon) * label + epsilon * prior.

    Args:
        label: one-hot rows, shape [N, D].
        prior_dist: a distribution over the classes, shape [1, D]; None: uniform.
        epsilon: weight of the prior, above 0 and at most 1.

    Returns:
        Variable: same shape as `label`, of type `dtype`.

    Raises:
        ValueError: `epsilon` is out of range.

    Example:
        label = fluid.layers.one_hot(fluid.data('label', [None, 1], 'int64'), depth=10)
        soft = fluid.layers.label_smooth(label, epsilon=0.1)

    Reference:
        Szegedy et al., Rethinking the Inception Architecture for Computer Vision, CVPR 2016.
    """
    if not 0.0 < epsilon <= 1.0:
        raise ValueError(f"epsilon must be above 0 and at most 1, not {epsilon!r}")
    label.stop_gradient = True
    return {"epsilon": float_attr(epsilon)}


@op_layer("kldiv_loss", fluid_accepts={"x target": "float32 float64"}, output="Loss")
def kldiv_loss(x: Variable, target: Variable, reduction: str = "mean", name: str | None = None) -> Attrs:
    """Computes the Kullback-Leibler divergence target * (log(target) - x).

    Args:
        x: the logarithms of probabilities, shape [N, ...].
        target: the target probabilities, same shape and type as `x`.
        reduction: 'mean' over all elements, 'batchmean' (the sum divided by N), 'sum', or 'none'.

    Returns:
        Variable: shape [1], or the shape of `x` with 'none'; same type as `x`.

    Example:
        x = fluid.data('x', [None, 10])
        target = fluid.data('target', [None, 10])
        loss = fluid.layers.kldiv_loss(x, target, reduction='batchmean')
    """


@op_layer("smooth_l1_loss", fluid_accepts={"x y": "float32 float64"}, outputs="Diff Out", prefix="smooth_l1_loss")
def smooth_l1(
    x: Variable,
    y: Variable,
    inside_weight: Variable | None = None,
    outside_weight: Variable | None = None,
    sigma: float | None = None,
) -> Attrs:
    """Computes the smooth L1 loss of each row: quadratic for differences below 1 / sigma ** 2, linear beyond.

    Args:
        x: shape [N, ...].
        y: same shape and type as `x`.
        inside_weight: same shape as `x`; multiplies the differences.
        outside_weight: same shape as `x`; multiplies the losses of the elements.
        sigma: sets the point where the loss becomes linear; None: 1.

    Returns:
        Variable: shape [N, 1], the sum over each row, same type as `x`.

    Example:
        x = fluid.data('x', [None, 4])
        y = fluid.data('y', [None, 4])
        assert fluid.layers.smooth_l1(x, y).shape == (-1, 1)

    Reference:
        Girshick, Fast R-CNN, ICCV 2015.
    """
    return {"sigma": 1.0 if sigma is None else sigma}


@op_layer("rank_loss", fluid_accepts={"label left right": "float32 float64"})
def rank_loss(label: Variable, left: Variable, right: Variable, name: str | None = None) -> Attrs:
    """Computes the RankNet loss of two scores, log(1 + exp(o)) - label * o with o = left - right.

    Args:
        label: shape [N, 1]: 1 if `left` ranks higher, 0 if `right` does.
        left: the left scores, shape [N, 1].
        right: the right scores, shape [N, 1].

    Returns:
        Variable: shape [N, 1], float32.

    Example:
        label, left, right = (fluid.data(name, [None, 1]) for name in ('label', 'left', 'right'))
        loss = fluid.layers.rank_loss(label, left, right)

    Reference:
        Burges et al., Learning to Rank using Gradient Descent, ICML 2005.
    """


@op_layer(
    "margin_rank_loss",
    fluid_accepts={"label": "float32 float64"},
    inputs={"X1": "left", "X2": "right"},
    outputs="Out Activated",
)
def margin_rank_loss(
    label: Variable, left: Variable, right: Variable, margin: float = 0.1, name: str | None = None
) -> Attrs:
    """Computes the margin ranking loss of two scores, max(0, -label * (left - right) + margin).

    Args:
        label: shape [N, 1]: 1 if `left` ranks higher, -1 if `right` does.
        left: the left scores, shape [N, 1].
        right: the right scores, shape [N, 1], same type as `left`.
        margin: the required difference of the scores.

    Returns:
        Variable: shape [N, 1], same type as `left`.

    Example:
        label, left, right = (fluid.data(name, [None, 1]) for name in ('label', 'left', 'right'))
        loss = fluid.layers.margin_rank_loss(label, left, right, margin=0.1)
    """
