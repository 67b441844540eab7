"""Losses of examples, most with one value per example."""

from __future__ import annotations

from penstock._src.ir.types import float_attr
from penstock._src.ir.variable import Variable
from penstock._src.layers.decorators import Attrs, layer, op_layer
from penstock._src.layers.helper import LayerHelper

__all__ = [
    "cross_entropy",
    "huber_loss",
    "kldiv_loss",
    "label_smooth",
    "log_loss",
    "margin_rank_loss",
    "one_hot",
    "rank_loss",
    "sigmoid_cross_entropy_with_logits",
    "smooth_l1",
    "softmax_with_cross_entropy",
    "square_error_cost",
]


@layer("cross_entropy", typed="input")
def cross_entropy(input, label, soft_label=False, ignore_index=-100):
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


def _cross_entropy2(input, label, ignore_index):
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


@layer()
def softmax_with_cross_entropy(
    logits, label, soft_label=False, ignore_index=-100, numeric_stable_mode=True, return_softmax=False, axis=-1
):
    """Computes softmax and cross entropy in one numerically stable op.

    Args:
        logits (Variable): shape [..., D] with the classes at `axis`, float32 or float64.
        label (Variable): the class indices, the shape of `logits` with extent 1 at `axis`, int64; with `soft_label`, a
            probability for each class, same shape and type as `logits`.
        soft_label (bool): whether labels are distributions.
        ignore_index (int): examples of this class have loss 0; used for class indices only.
        numeric_stable_mode (bool): has no effect: the computation is always stable.
        return_softmax (bool): return the probabilities too.
        axis (int): the axis of the classes; negative: counted from the end.

    Returns:
        Variable | tuple[Variable, Variable]: the loss, the shape of `logits` with extent 1 at `axis`; with
            `return_softmax`, also the probabilities, same shape as `logits`. Both have the type of `logits`.

    Example:
        logits = fluid.data('x', [None, 10])
        label = fluid.data('label', [None, 1], 'int64')
        loss = fluid.layers.softmax_with_cross_entropy(logits, label)
        assert loss.shape == (-1, 1)
    """
    helper = LayerHelper("softmax_with_cross_entropy").takes(logits=logits)
    softmax = helper.create_variable_for_type_inference(logits.dtype)
    loss = helper.create_variable_for_type_inference(logits.dtype)
    attrs = {
        "soft_label": soft_label,
        "ignore_index": ignore_index,
        "numeric_stable_mode": numeric_stable_mode,
        "axis": axis,
    }
    outputs = {"Softmax": softmax, "Loss": loss}
    helper.append_op("softmax_with_cross_entropy", {"Logits": logits, "Label": label}, outputs, attrs)
    return (loss, softmax) if return_softmax else loss


@layer(fluid_accepts={"input label": "float32 float64"})
def square_error_cost(input, label):
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


@layer("huber_loss", fluid_accepts={"input label": "float32 float64"})
def huber_loss(input, label, delta):
    """Computes the Huber loss: quadratic in the error r up to `delta`, linear beyond it.

        r ** 2 / 2 if |r| <= delta, else delta * (|r| - delta / 2), where r = label - input

    Args:
        input (Variable): shape [N, 1].
        label (Variable): same shape and type as `input`.
        delta (float): the error above which the loss is linear.

    Returns:
        Variable: shape [N, 1], same type as `input`.

    Example:
        x = fluid.data('x', [None, 1])
        y = fluid.data('y', [None, 1])
        loss = fluid.layers.huber_loss(x, y, delta=1.0)

    Reference:
        Huber, Robust Estimation of a Location Parameter, Annals of Mathematical Statistics 1964.
    """
    helper = LayerHelper("huber_loss").takes(input=input)
    residual = helper.create_variable_for_type_inference(input.dtype)
    out = helper.create_variable_for_type_inference(input.dtype)
    helper.append_op("huber_loss", {"X": input, "Y": label}, {"Out": out, "Residual": residual}, {"delta": delta})
    return out


@layer("one_hot", typed="input")
def one_hot(input, depth, allow_out_of_range=False):
    """Converts class indices to one-hot rows, with 1 at the index and 0 elsewhere.

    Args:
        input (Variable): the class indices, shape [..., 1].
        depth (int | Variable): length of a row; a Variable is int32 of shape [1].
        allow_out_of_range (bool): an index outside [0, depth) becomes a row of zeros instead of an error.

    Returns:
        Variable: shape [..., depth], float32, with stop_gradient set.

    Example:
        label = fluid.data('label', [None, 1], 'int64')
        assert fluid.layers.one_hot(label, depth=10).shape == (-1, 10)
    """
    helper = LayerHelper("one_hot")
    out = helper.create_variable_for_type_inference("float32")
    inputs, attrs = {"X": input}, {"allow_out_of_range": allow_out_of_range}
    if isinstance(depth, Variable):
        inputs["depth_tensor"] = depth
    else:
        attrs["depth"] = depth
    helper.append_op("one_hot", inputs, {"Out": out}, attrs)
    out.stop_gradient = True
    return out


@layer("label_smooth", fluid_accepts={"label": "float32 float64"})
def label_smooth(label, prior_dist=None, epsilon=0.1, dtype="float32", name=None):
    """Smooths one-hot labels: (1 - epsilon) * label + epsilon * prior.

    Args:
        label (Variable): one-hot rows, shape [N, D].
        prior_dist (Variable | None): a distribution over the classes, shape [1, D]; None: uniform.
        epsilon (float): weight of the prior, above 0 and at most 1.

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
    helper = LayerHelper("label_smooth", name=name)
    label.stop_gradient = True
    out = helper.create_variable_for_type_inference(dtype)
    inputs = {"X": label} if prior_dist is None else {"X": label, "PriorDist": prior_dist}
    helper.append_op("label_smooth", inputs, {"Out": out}, {"epsilon": float_attr(epsilon)})
    return out


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


@layer(fluid_accepts={"x y": "float32 float64"})
def smooth_l1(x, y, inside_weight=None, outside_weight=None, sigma=None):
    """Computes the smooth L1 loss of each row: quadratic for differences below 1 / sigma ** 2, linear beyond.

    Args:
        x (Variable): shape [N, ...].
        y (Variable): same shape and type as `x`.
        inside_weight (Variable | None): same shape as `x`; multiplies the differences.
        outside_weight (Variable | None): same shape as `x`; multiplies the losses of the elements.
        sigma (float | None): sets the point where the loss becomes linear; None: 1.

    Returns:
        Variable: shape [N, 1], the sum over each row, same type as `x`.

    Example:
        x = fluid.data('x', [None, 4])
        y = fluid.data('y', [None, 4])
        assert fluid.layers.smooth_l1(x, y).shape == (-1, 1)

    Reference:
        Girshick, Fast R-CNN, ICCV 2015.
    """
    helper = LayerHelper("smooth_l1_loss").takes(x=x)
    difference = helper.create_variable_for_type_inference(x.dtype)
    loss = helper.create_variable_for_type_inference(x.dtype)
    inputs = {"X": x, "Y": y}
    if inside_weight is not None:
        inputs["InsideWeight"] = inside_weight
    if outside_weight is not None:
        inputs["OutsideWeight"] = outside_weight
    helper.append_op(
        "smooth_l1_loss", inputs, {"Diff": difference, "Out": loss}, {"sigma": 1.0 if sigma is None else sigma}
    )
    return loss


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


@layer("margin_rank_loss", fluid_accepts={"label": "float32 float64"})
def margin_rank_loss(label, left, right, margin=0.1, name=None):
    """Computes the margin ranking loss of two scores, max(0, -label * (left - right) + margin).

    Args:
        label (Variable): shape [N, 1]: 1 if `left` ranks higher, -1 if `right` does.
        left (Variable): the left scores, shape [N, 1], float32.
        right (Variable): the right scores, shape [N, 1], float32.
        margin (float): the required difference of the scores.

    Returns:
        Variable: shape [N, 1], float32.

    Example:
        label, left, right = (fluid.data(name, [None, 1]) for name in ('label', 'left', 'right'))
        loss = fluid.layers.margin_rank_loss(label, left, right, margin=0.1)
    """
    helper = LayerHelper("margin_rank_loss", name=name).takes(left=left)
    out = helper.create_variable_for_type_inference(left.dtype)
    activated = helper.create_variable_for_type_inference(left.dtype)
    helper.append_op(
        "margin_rank_loss",
        {"Label": label, "X1": left, "X2": right},
        {"Out": out, "Activated": activated},
        {"margin": margin},
    )
    return out
