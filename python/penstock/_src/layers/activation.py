"""Elementwise functions with attributes or learned slopes."""

from __future__ import annotations

from penstock._src.ir.types import float_attr
from penstock._src.ir.variable import Variable
from penstock._src.layers.decorators import Attrs, layer, op_layer
from penstock._src.layers.helper import LayerHelper
from penstock._src.parameters.initializer import Constant
from penstock._src.parameters.param_attr import ParamAttr


@op_layer("leaky_relu", typed="x")
def leaky_relu(x: Variable, alpha: float = 0.02, name: str | None = None) -> Attrs:
    """Computes x where it is positive and alpha * x elsewhere."""


@op_layer("elu", typed="x")
def elu(x: Variable, alpha: float = 1.0, name: str | None = None) -> Attrs:
    """Computes x where it is positive and alpha * (exp(x) - 1) elsewhere."""


@op_layer("relu6", typed="x")
def relu6(x: Variable, threshold: float = 6.0, name: str | None = None) -> Attrs:
    """Clips x to [0, threshold]."""


@op_layer("stanh", typed="x")
def stanh(x: Variable, scale_a: float = 0.67, scale_b: float = 1.7159, name: str | None = None) -> Attrs:
    """Computes scale_b * tanh(scale_a * x)."""


@op_layer("hard_sigmoid", typed="x")
def hard_sigmoid(x: Variable, slope: float = 0.2, offset: float = 0.5, name: str | None = None) -> Attrs:
    """Computes slope * x + offset, clipped to [0, 1]."""


@op_layer("swish", typed="x")
def swish(x: Variable, beta: float = 1.0, name: str | None = None) -> Attrs:
    """Computes x / (1 + exp(-beta * x))."""


@op_layer("hard_swish", typed="x")
def hard_swish(
    x: Variable, threshold: float = 6.0, scale: float = 6.0, offset: float = 3.0, name: str | None = None
) -> Attrs:
    """Computes x * min(max(x + offset, 0), threshold) / scale."""


@op_layer("brelu", typed="x")
def brelu(x: Variable, t_min: float = 0.0, t_max: float = 24.0, name: str | None = None) -> Attrs:
    """Clips each element to [t_min, t_max]. The gradient at both ends is 0."""


@op_layer("soft_relu", typed="x")
def soft_relu(x: Variable, threshold: float = 40.0, name: str | None = None) -> Attrs:
    """Computes log(1 + exp(x)), after clipping x to [-threshold, threshold].

    Raises:
        penstock.ProgramError: `threshold` is negative.
    """


@op_layer("selu", fluid_accepts={"x": "float32 float64"})
def selu(x: Variable, scale: float | None = None, alpha: float | None = None, name: str | None = None) -> Attrs:
    """Computes scale * x where x is positive, scale * alpha * (exp(x) - 1) elsewhere.

    Args:
        scale: factor of the result, by default 1.0507; with the default alpha, it keeps mean and variance.
        alpha: factor of the negative side, by default 1.6733.

    Reference:
        G. Klambauer, T. Unterthiner, A. Mayr, S. Hochreiter: "Self-normalizing neural networks", NIPS 2017.
    """


@op_layer("mish", fluid_accepts={"x": "float32 float64"})
def mish(x: Variable, threshold: float = 20, name: str | None = None) -> Attrs:
    """Computes x * tanh(log(1 + exp(x))).

    Args:
        threshold: bound of the exact formula: log(1 + exp(x)) is replaced by x above `threshold` and by exp(x) below
            -`threshold`.

    Raises:
        ValueError: `threshold` is not above 0.

    Reference:
        D. Misra: "Mish: a self regularized non-monotonic activation function", BMVC 2020.
    """
    if not threshold > 0:
        raise ValueError(f"mish: threshold must be above 0, not {threshold!r}")
    return {"threshold": float_attr(threshold)}


@op_layer("maxout", fluid_accepts={"x": "float32 float64"})
def maxout(x: Variable, groups: int, name: str | None = None, axis: int = 1) -> Attrs:
    """Takes the maximum over groups of neighbouring channels.

    Args:
        x: shape [N, C, H, W], or [N, H, W, C] for axis 3 or -1.
        groups: number of channels in a group; divides C.
        axis: the axis of the channels: 1, 3 or -1.

    Returns:
        Variable: the shape of `x` with C / groups channels, same type as `x`.

    Raises:
        ValueError: `axis` has another value.

    Example:
        x = fluid.data('x', [None, 6, 4, 4])
        assert fluid.layers.maxout(x, groups=2).shape == (-1, 3, 4, 4)
    """
    if axis not in (1, -1, 3):
        raise ValueError(f"axis must be 1, -1 or 3, not {axis!r}")
    return {"axis": 3 if axis == -1 else axis}


@layer("prelu", fluid_accepts={"x": "float32 float64"})
def prelu(x: Variable, mode: str, param_attr: ParamAttr | None = None, name: str | None = None) -> Variable:
    """Computes x where it is positive, and x times a learned slope elsewhere.

    Args:
        x: shape [N, ...].
        mode: 'all' for one slope, 'channel' for one slope per channel (axis 1), 'element' for one slope per element
            of an example.
        param_attr: the slopes, initially 0.25.

    Returns:
        Variable: same shape and type as `x`.

    Raises:
        ValueError: `mode` has another value, or `mode` is 'channel' and `x` has no channels.

    Example:
        x = fluid.data('x', [None, 3, 4, 4])
        y = fluid.layers.prelu(x, mode='channel')

    Reference:
        He et al., Delving Deep into Rectifiers, ICCV 2015.
    """
    if mode not in ("all", "channel", "element"):
        raise ValueError(f"prelu: mode must be all, channel or element, not {mode!r}")
    helper = LayerHelper("prelu", param_attr=param_attr, name=name).takes(x=x)
    if mode == "channel" and len(x.shape) < 2:
        raise ValueError(f"mode channel needs an x with channels; its shape is {x.shape}")
    shape = {"all": [1], "channel": [1, *x.shape[1:2], 1, 1], "element": [1, *x.shape[1:]]}[mode]
    slopes = helper.create_parameter(helper.param_attr, shape, "float32", default_initializer=Constant(0.25))
    out = helper.create_variable_for_type_inference(x.dtype)
    helper.append_op("prelu", {"X": x, "Alpha": slopes}, {"Out": out}, {"mode": mode})
    return out
