"""Elementwise functions with attributes or learned slopes."""

from penstock._src.ir.argument_types import element_types
from penstock._src.ir.types import float_attr
from penstock._src.layers.helper import LayerHelper
from penstock._src.parameters.initializer import Constant

__all__ = [
    "brelu",
    "elu",
    "hard_sigmoid",
    "hard_swish",
    "leaky_relu",
    "maxout",
    "mish",
    "prelu",
    "relu6",
    "selu",
    "soft_relu",
    "stanh",
    "swish",
]


def _layer(op_type, x, attrs, name):
    helper = LayerHelper(op_type, name=name).takes(x=x)
    out = helper.create_variable_for_type_inference(x.dtype)
    helper.append_op(op_type, {"X": x}, {"Out": out}, attrs)
    return out


@element_types(x="float16 float32 float64")
def leaky_relu(x, alpha=0.02, name=None):
    """Computes x where it is positive and alpha * x elsewhere.

    Args:
        x (Variable): any shape, float32 or float64.
        alpha (float): slope of the negative side.
        name (str | None): prefix of the names of the variables that the layer creates.

    Returns:
        Variable: same shape and type as `x`.

    Raises:
        TypeError: `x` is not a Variable, or has an unsupported element type.

    Example:
        x = fluid.data('x', [None, 4])
        y = fluid.layers.leaky_relu(x, alpha=0.1)
    """
    return _layer("leaky_relu", x, {"alpha": alpha}, name)


@element_types(x="float16 float32 float64")
def elu(x, alpha=1.0, name=None):
    """Computes x where it is positive and alpha * (exp(x) - 1) elsewhere.

    Args:
        x (Variable): any shape, float32 or float64.
        alpha (float): magnitude of the limit for very negative x.
        name (str | None): prefix of the names of the variables that the layer creates.

    Returns:
        Variable: same shape and type as `x`.

    Raises:
        TypeError: `x` is not a Variable, or has an unsupported element type.

    Example:
        x = fluid.data('x', [None, 4])
        y = fluid.layers.elu(x, alpha=0.2)
    """
    return _layer("elu", x, {"alpha": alpha}, name)


@element_types(x="float16 float32 float64")
def relu6(x, threshold=6.0, name=None):
    """Clips x to [0, threshold].

    Args:
        x (Variable): any shape, float32 or float64.
        threshold (float): upper bound.
        name (str | None): prefix of the names of the variables that the layer creates.

    Returns:
        Variable: same shape and type as `x`.

    Raises:
        TypeError: `x` is not a Variable, or has an unsupported element type.

    Example:
        x = fluid.data('x', [None, 4])
        y = fluid.layers.relu6(x)
    """
    return _layer("relu6", x, {"threshold": threshold}, name)


@element_types(x="float16 float32 float64")
def stanh(x, scale_a=0.67, scale_b=1.7159, name=None):
    """Computes scale_b * tanh(scale_a * x).

    Args:
        x (Variable): any shape, float32 or float64.
        scale_a (float): factor of the argument.
        scale_b (float): factor of the result.
        name (str | None): prefix of the names of the variables that the layer creates.

    Returns:
        Variable: same shape and type as `x`.

    Raises:
        TypeError: `x` is not a Variable, or has an unsupported element type.

    Example:
        x = fluid.data('x', [None, 4])
        y = fluid.layers.stanh(x)
    """
    return _layer("stanh", x, {"scale_a": scale_a, "scale_b": scale_b}, name)


@element_types(x="float16 float32 float64")
def hard_sigmoid(x, slope=0.2, offset=0.5, name=None):
    """Computes slope * x + offset, clipped to [0, 1].

    Args:
        x (Variable): any shape, float32 or float64.
        slope (float): slope of the linear part.
        offset (float): value at 0.
        name (str | None): prefix of the names of the variables that the layer creates.

    Returns:
        Variable: same shape and type as `x`.

    Raises:
        TypeError: `x` is not a Variable, or has an unsupported element type.

    Example:
        x = fluid.data('x', [None, 4])
        y = fluid.layers.hard_sigmoid(x)
    """
    return _layer("hard_sigmoid", x, {"slope": slope, "offset": offset}, name)


@element_types(x="float16 float32 float64")
def swish(x, beta=1.0, name=None):
    """Computes x / (1 + exp(-beta * x)).

    Args:
        x (Variable): any shape, float32 or float64.
        beta (float): factor of the exponent.
        name (str | None): prefix of the names of the variables that the layer creates.

    Returns:
        Variable: same shape and type as `x`.

    Raises:
        TypeError: `x` is not a Variable, or has an unsupported element type.

    Example:
        x = fluid.data('x', [None, 4])
        y = fluid.layers.swish(x)
    """
    return _layer("swish", x, {"beta": beta}, name)


@element_types(x="float16 float32 float64")
def hard_swish(x, threshold=6.0, scale=6.0, offset=3.0, name=None):
    """Computes x * min(max(x + offset, 0), threshold) / scale.

    Args:
        x (Variable): any shape, float32 or float64.
        threshold (float): upper bound of the inner clip.
        scale (float): divisor.
        offset (float): shift of the inner clip.
        name (str | None): prefix of the names of the variables that the layer creates.

    Returns:
        Variable: same shape and type as `x`.

    Raises:
        TypeError: `x` is not a Variable, or has an unsupported element type.

    Example:
        x = fluid.data('x', [None, 4])
        y = fluid.layers.hard_swish(x)
    """
    return _layer("hard_swish", x, {"threshold": threshold, "scale": scale, "offset": offset}, name)


@element_types(x="float16 float32 float64")
def brelu(x, t_min=0.0, t_max=24.0, name=None):
    """Clips each element to [t_min, t_max].

    Args:
        x (Variable): any shape, float32 or float64.
        t_min (float): the minimum.
        t_max (float): the maximum.
        name (str): prefix of the result's name; by default the layer's.

    Returns:
        Variable: same shape and type as `x`; the gradient at both ends is 0.

    Raises:
        TypeError: `x` is not a Variable, or has an unsupported element type.
        penstock.ProgramError: `x` contains integers.

    Example:
        y = fluid.layers.brelu(fluid.data('x', [None, 3]), t_min=1.0, t_max=20.0)
    """
    return _layer("brelu", x, {"t_min": t_min, "t_max": t_max}, name)


@element_types(x="float16 float32 float64")
def soft_relu(x, threshold=40.0, name=None):
    """Computes log(1 + exp(x)), after clipping x to [-threshold, threshold].

    Args:
        x (Variable): any shape, float32 or float64.
        threshold (float): bound of the clipped `x`, at least 0.
        name (str): prefix of the result's name; by default the layer's.

    Returns:
        Variable: same shape and type as `x`.

    Raises:
        TypeError: `x` is not a Variable, or has an unsupported element type.
        penstock.ProgramError: `threshold` is negative.

    Example:
        y = fluid.layers.soft_relu(fluid.data('x', [None, 3]), threshold=20.0)
    """
    return _layer("soft_relu", x, {"threshold": threshold}, name)


@element_types(x="float32 float64")
def selu(x, scale=None, alpha=None, name=None):
    """Computes scale * x where x is positive, scale * alpha * (exp(x) - 1) elsewhere.

    Args:
        x (Variable): any shape, float32 or float64.
        scale (float): factor of the result, by default 1.0507; with the default alpha, it keeps mean and variance.
        alpha (float): factor of the negative side, by default 1.6733.
        name (str): prefix of the result's name; by default the layer's.

    Returns:
        Variable: same shape and type as `x`.

    Raises:
        TypeError: `x` is not a Variable, or has an unsupported element type.
        penstock.ProgramError: `x` contains integers.

    Example:
        y = fluid.layers.selu(fluid.data('x', [None, 3]))

    Reference:
        G. Klambauer, T. Unterthiner, A. Mayr, S. Hochreiter: "Self-normalizing neural networks", NIPS 2017.
    """
    attrs = {"scale": scale, "alpha": alpha}
    return _layer("selu", x, {attr: value for attr, value in attrs.items() if value is not None}, name)


@element_types(x="float32 float64")
def mish(x, threshold=20, name=None):
    """Computes x * tanh(log(1 + exp(x))).

    Args:
        x (Variable): any shape, float32 or float64.
        threshold (float): bound of the exact formula: log(1 + exp(x)) is replaced by x above `threshold` and by
            exp(x) below -`threshold`.
        name (str): prefix of the result's name; by default the layer's.

    Returns:
        Variable: same shape and type as `x`.

    Raises:
        TypeError: `x` is not a Variable, or has an unsupported element type.
        ValueError: `threshold` is not above 0.

    Example:
        y = fluid.layers.mish(fluid.data('x', [None, 3]))

    Reference:
        D. Misra: "Mish: a self regularized non-monotonic activation function", BMVC 2020.
    """
    if not threshold > 0:
        raise ValueError(f"mish: threshold must be above 0, not {threshold!r}")
    return _layer("mish", x, {"threshold": float_attr(threshold)}, name)


@element_types(x="float32 float64")
def maxout(x, groups, name=None, axis=1):
    """Takes the maximum over groups of neighbouring channels.

    Args:
        x (Variable): shape [N, C, H, W], or [N, H, W, C] for axis 3 or -1; float32 or float64.
        groups (int): number of channels in a group; divides C.
        name (str | None): prefix of the names of the variables that the layer creates.
        axis (int): the axis of the channels: 1, 3 or -1.

    Returns:
        Variable: the shape of `x` with C / groups channels, same type as `x`.

    Raises:
        TypeError: `x` is not a Variable, or has an unsupported element type.
        ValueError: `axis` has another value.

    Example:
        x = fluid.data('x', [None, 6, 4, 4])
        assert fluid.layers.maxout(x, groups=2).shape == (-1, 3, 4, 4)
    """
    if axis not in (1, -1, 3):
        raise ValueError(f"axis must be 1, -1 or 3, not {axis!r}")
    return _layer("maxout", x, {"groups": groups, "axis": 3 if axis == -1 else axis}, name)


@element_types(x="float32 float64")
def prelu(x, mode, param_attr=None, name=None):
    """Computes x where it is positive, and x times a learned slope elsewhere.

    Args:
        x (Variable): shape [N, ...], float32.
        mode (str): 'all' for one slope, 'channel' for one slope per channel (axis 1), 'element' for one slope per
            element of an example.
        param_attr (ParamAttr | None): the slopes, initially 0.25.
        name (str | None): prefix of the names of the variables that the layer creates.

    Returns:
        Variable: same shape and type as `x`.

    Raises:
        TypeError: `x` is not a Variable, or has an unsupported element type.
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
