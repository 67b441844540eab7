"""Losses for rankings, pairs, overlaps and distances to centres."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock._src.ir.types import float_attr
from penstock._src.ir.variable import Variable
from penstock._src.layers.arithmetic import reduce_mean, reduce_sum
from penstock._src.layers.comparison import equal
from penstock._src.layers.decorators import Attrs, layer, op_layer, op_layer_with_results
from penstock._src.layers.helper import LayerHelper, require_kind, require_variables
from penstock._src.layers.loss import one_hot, softmax_with_cross_entropy, square_error_cost
from penstock._src.layers.nn import matmul
from penstock._src.layers.reshaping import reshape, transpose
from penstock._src.layers.slicing import expand
from penstock._src.layers.unary import square
from penstock._src.parameters.initializer import Constant

if TYPE_CHECKING:
    from penstock._src.parameters.param_attr import ParamAttr


@op_layer("bpr_loss", typed="input", inputs={"X": "input"}, output="Y")
def bpr_loss(input: Variable, label: Variable, name: str | None = None) -> Attrs:
    """Computes the Bayesian personalised ranking loss of the correct item against all others.

    Args:
        input: the scores, shape [N, items].
        label: the correct items, shape [N, 1], int64.

    Returns:
        Variable: shape [N, 1], same type as `input`: the mean of log(1 + exp(score - correct score)) over the other
        items.

    Example:
        scores, label = fluid.data('scores', [None, 100]), fluid.data('label', [None, 1], 'int64')
        cost = fluid.layers.bpr_loss(scores, label)

    Reference:
        S. Rendle, C. Freudenthaler, Z. Gantner, L. Schmidt-Thieme: "BPR: Bayesian personalized ranking from implicit
        feedback", UAI 2009.
    """


def center_loss(
    input: Variable,
    label: Variable,
    num_classes: int,
    alpha: float | Variable,
    param_attr: ParamAttr,
    update_center: bool = True,
) -> Variable:
    """Computes half the squared distance of each row to the centre of its class, and moves the centres.

    Args:
        input (Variable): shape [N, columns], float32 or float64.
        label (Variable): the class of each row, shape [N, 1], int64.
        num_classes (int): the number of classes.
        alpha (float or Variable): the share of the mean distance by which a centre moves.
        param_attr (ParamAttr): attributes of the centres, a parameter of shape [num_classes, columns].
        update_center (bool): whether the centres move.

    Returns:
        Variable: shape [N, 1], same type as `input`.

    Raises:
        TypeError: `input` or `label` is not a Variable, or `alpha` is neither a float nor a Variable.
        penstock.ProgramError: the shapes are incompatible.

    Reference:
        Y. Wen, K. Zhang, Z. Li, Y. Qiao: "A discriminative feature learning approach for deep face recognition",
        ECCV 2016.

    Example:
        x, label = fluid.data('x', [None, 30]), fluid.data('label', [None, 1], 'int64')
        cost = fluid.layers.center_loss(x, label, num_classes=10, alpha=0.2, param_attr=fluid.ParamAttr(name='centers'))
    """
    helper = LayerHelper("center_loss", param_attr=param_attr).takes(input=input, label=label)
    centers = helper.create_parameter(helper.param_attr, [num_classes, input.shape[1]], input.dtype)
    centers.stop_gradient = True
    require_kind("center_loss", float, Variable, alpha=alpha)
    if not isinstance(alpha, Variable):
        value = alpha
        alpha = helper.create_variable(
            name="centerloss_alpha", shape=[1], dtype="float32", persistable=True, stop_gradient=True
        )
        helper.set_variable_initializer(alpha, Constant(value))
    difference = helper.create_variable_for_type_inference(input.dtype)
    loss = helper.create_variable_for_type_inference(input.dtype)
    helper.append_op(
        "center_loss",
        {"X": input, "Label": label, "Centers": centers, "CenterUpdateRate": alpha},
        {"SampleCenterDiff": difference, "Loss": loss, "CentersOut": centers},
        {"cluster_num": num_classes, "need_update": update_center},
    )
    return loss


@layer("teacher_student_sigmoid_loss", fluid_accepts={"input label": "float32 float64"})
def teacher_student_sigmoid_loss(
    input: Variable, label: Variable, soft_max_up_bound: float = 15.0, soft_max_lower_bound: float = -15.0
) -> Variable:
    """Computes the log loss of clicks and of a teacher's predictions.

    Args:
        input (Variable): the logits, shape [N, 1].
        label (Variable): shape [N, 1], same type as `input`. Without a prediction of the teacher: -2 without a click,
            -1 with a click. Otherwise the prediction, in [0, 1], plus 1 if there was a click.
        soft_max_up_bound (float): logits of at least this have no gradient.
        soft_max_lower_bound (float): logits of at most this have no gradient.

    Returns:
        Variable: shape [N, 1], same type as `input`.

    Raises:
        penstock.ProgramError: the shapes or types differ.

    Example:
        x, label = fluid.data('x', [None, 1]), fluid.data('label', [None, 1])
        cost = fluid.layers.teacher_student_sigmoid_loss(x, label)
    """
    helper = LayerHelper("teacher_student_sigmoid_loss").takes(input=input, label=label)
    out = helper.create_variable(dtype=input.dtype)
    helper.append_op(
        "teacher_student_sigmoid_loss",
        {"X": input, "Label": label},
        {"Y": out},
        {"soft_max_lower_bound": float_attr(soft_max_lower_bound), "soft_max_up_bound": float_attr(soft_max_up_bound)},
    )
    return out


@layer()
def dice_loss(input: Variable, label: Variable, epsilon: float = 0.00001, name: str | None = None) -> Variable:
    """Computes the dice loss 1 - 2 * |A and B| / (|A| + |B|), averaged over the batch.

    Args:
        input (Variable): the probabilities, shape [N, ..., classes], float32 or float64.
        label (Variable): the correct classes, shape [N, ..., 1], int64.
        epsilon (float): keeps the divisor above 0.
        name (str): has no effect, as in Fluid.

    Returns:
        Variable: shape [1], same type as `input`.

    Raises:
        penstock.ProgramError: the shapes are incompatible.

    Example:
        x, label = fluid.data('x', [None, 8, 8, 2]), fluid.data('label', [None, 8, 8, 1], 'int64')
        loss = fluid.layers.dice_loss(x, label)
    """
    require_variables("dice_loss", input=input, label=label)
    label = one_hot(label, depth=input.shape[-1])
    axes = list(range(1, len(input.shape)))
    common = reduce_sum(input * label, dim=axes)
    divisor = reduce_sum(input, dim=axes) + reduce_sum(label, dim=axes)
    return reduce_mean(1 - common * 2 / (divisor + epsilon))


@layer(fluid_accepts={"input label": "float32 float64"})
def mse_loss(input: Variable, label: Variable) -> Variable:
    """Computes the mean squared error.

    Args:
        label (Variable): same shape and type as `input`.

    Returns:
        Variable: shape [1], same type as `input`.

    Raises:
        penstock.ProgramError: the shapes are incompatible.

    Example:
        loss = fluid.layers.mse_loss(fluid.data('x', [None, 1]), fluid.data('y', [None, 1]))
    """
    return reduce_mean(square_error_cost(input, label))


@layer(fluid_accepts={"anchor positive": "float32 float64", "labels": "int64 float32 float64"})
def npair_loss(anchor: Variable, positive: Variable, labels: Variable, l2_reg: float = 0.002) -> Variable:
    """Computes the N-pair loss, which makes each anchor more similar to positives of its class than to others.

    Args:
        anchor (Variable): shape [N, columns] with known N.
        positive (Variable): same shape and type as `anchor`.
        labels (Variable): the class of each pair, shape [N].
        l2_reg (float): the factor of the L2 regularisation.

    Returns:
        Variable: shape [1], same type as `anchor`.

    Raises:
        TypeError: `anchor`, `positive` or `labels` has an unsupported element type.
        penstock.ProgramError: the shapes are incompatible.

    Reference:
        K. Sohn: "Improved deep metric learning with multi-class N-pair loss objective", NIPS 2016.

    Example:
        anchor, positive = fluid.data('anchor', [18, 6]), fluid.data('positive', [18, 6])
        loss = fluid.layers.npair_loss(anchor, positive, fluid.data('labels', [18]), l2_reg=0.002)
    """
    beta = 0.25
    size = labels.shape[0]
    labels = expand(reshape(labels, shape=[size, 1]), expand_times=[1, size])
    labels = equal(labels, transpose(labels, perm=[1, 0])).astype("float32")
    labels = labels / reduce_sum(labels, dim=1, keep_dim=True)
    lengths = reduce_mean(reduce_sum(square(anchor), 1)) + reduce_mean(reduce_sum(square(positive), 1))
    lengths = lengths * beta * l2_reg
    likeness = matmul(anchor, positive, transpose_x=False, transpose_y=True)
    entropy = softmax_with_cross_entropy(logits=likeness, label=labels, soft_label=True)
    return lengths + reduce_mean(reduce_sum(labels * entropy, 0))


@op_layer_with_results(
    "mean_iou",
    "OutMeanIou OutWrong OutCorrect",
    typed="input label",
    inputs={"Predictions": "input", "Labels": "label"},
)
def mean_iou(input: Variable, label: Variable, num_classes: int) -> Attrs:
    """Computes the mean intersection over union of the classes.

    Args:
        input: the predicted class of each element, in [0, num_classes), any shape.
        label: the correct class of each element, same shape and type as `input`.

    Returns:
        tuple: (mean, wrong, correct). `mean`, shape [1], float32, is the mean of correct / (correct + wrong) over the
        classes that occur. `wrong` and `correct`, shape [num_classes], int32, count the elements of each class.

    Example:
        x, y = fluid.data('x', [None, 8, 8], 'int64'), fluid.data('y', [None, 8, 8], 'int64')
        mean, wrong, correct = fluid.layers.mean_iou(x, y, num_classes=5)
    """
