"""Division by norms: of matrices, of vectors, over neighbouring channels."""

from __future__ import annotations

import math

from penstock._src.ir.argument_types import ArgumentError
from penstock._src.ir.variable import Variable
from penstock._src.layers.decorators import Attrs, layer, op_layer
from penstock._src.layers.helper import LayerHelper
from penstock._src.layers.spatial import IMAGES
from penstock._src.parameters.initializer import Normal
from penstock._src.parameters.param_attr import ParamAttr


@layer()
def spectral_norm(
    weight: Variable, dim: int = 0, power_iters: int = 1, eps: float = 1e-12, name: str | None = None
) -> Variable:
    """Divides a weight by an estimate of its largest singular value.

    Args:
        weight (Variable): a parameter of 2 to 5 axes, float32 or float64.
        dim (int): the axis that forms the rows of the matrix, 0 or 1.
        power_iters (int): number of power iterations that improve the estimate.
        eps (float): keeps norms above 0.

    Returns:
        Variable: same shape and type as `weight`.

    Raises:
        penstock.ProgramError: `dim`, `power_iters` or the rank of `weight` is out of range.

    Example:
        weight = fluid.layers.create_parameter([4, 3, 2], 'float32')
        assert fluid.layers.spectral_norm(weight, dim=1, power_iters=2).shape == (4, 3, 2)

    Reference:
        Miyato, Kataoka, Koyama, Yoshida: "Spectral normalization for generative adversarial networks", ICLR 2018.
    """
    helper = LayerHelper("spectral_norm", name=name).takes(weight=weight)
    if isinstance(dim, bool) or not isinstance(dim, int) or not 0 <= dim < len(weight.shape):
        raise ArgumentError(
            f"spectral_norm: dim must be an axis of weight ({weight.name}), from 0 to {len(weight.shape) - 1}, not "
            f"{dim!r}"
        )
    rows = weight.shape[dim]
    vectors = []
    for width in (rows, math.prod(weight.shape) // rows):
        vector = helper.create_parameter(ParamAttr(), [width], weight.dtype, default_initializer=Normal(0.0, 1.0))
        vector.stop_gradient = True
        vectors.append(vector)
    out = helper.create_variable(dtype=weight.dtype)
    helper.append_op(
        "spectral_norm",
        {"Weight": weight, "U": vectors[0], "V": vectors[1]},
        {"Out": out},
        {"dim": dim, "power_iters": power_iters, "eps": eps},
    )
    return out


@op_layer("norm", fluid_accepts={"x": "float32 float64"}, outputs="Out Norm", prefix="l2_normalize")
def l2_normalize(x: Variable, axis: int | None, epsilon: float = 1e-12, name: str | None = None) -> Attrs:
    """Divides the vectors along one axis by their Euclidean norm.

    Args:
        axis: the axis of the vectors; None: 1; ignored if `x` has only one axis.
        epsilon: added to the sum of squares.

    Example:
        x = fluid.data('x', [None, 16])
        y = fluid.layers.l2_normalize(x, axis=1)
    """
    return {"axis": 0 if len(x.shape) == 1 else 1 if axis is None else axis}


@op_layer(
    "lrn",
    fluid_accepts={"input": "float32 float64"},
    inputs={"X": "input"},
    outputs="MidOut Out",
    stop_gradient="MidOut",
)
def lrn(
    input: Variable,
    n: int = 5,
    k: float = 1.0,
    alpha: float = 0.0001,
    beta: float = 0.75,
    name: str | None = None,
    data_format: str = "NCHW",
) -> Attrs:
    """Computes local response normalisation: x / (k + alpha * sum of squares over n neighbouring channels) ** beta.

    Args:
        input: shape [N, C, H, W], or [N, H, W, C] for NHWC.
        n: number of channels of a neighbourhood, odd.
        k: offset.
        alpha: factor of the sum.
        beta: exponent.

    Raises:
        ValueError: `input` does not have four axes, or `data_format` has an invalid value.

    Example:
        x = fluid.data('x', [None, 8, 4, 4])
        y = fluid.layers.lrn(x)

    Reference:
        Krizhevsky, Sutskever and Hinton, ImageNet Classification with Deep Convolutional Neural Networks, NIPS 2012.
    """
    if len(input.shape) != 4:
        raise ValueError(f"lrn takes images of 4 axes; the shape of its input is {input.shape}")
    IMAGES.require_format(data_format)
    return None
