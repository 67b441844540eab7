"""Division by norms: of matrices, of vectors, over neighbouring channels."""

from __future__ import annotations

import math

from penstock._src.ir.argument_types import ArgumentError
from penstock._src.layers.decorators import layer
from penstock._src.layers.helper import LayerHelper, require_variables
from penstock._src.parameters.initializer import Normal
from penstock._src.parameters.param_attr import ParamAttr

__all__ = ["l2_normalize", "lrn", "spectral_norm"]


@layer()
def spectral_norm(weight, dim=0, power_iters=1, eps=1e-12, name=None):
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


@layer(fluid_accepts={"x": "float32 float64"})
def l2_normalize(x, axis, epsilon=1e-12, name=None):
    """Divides the vectors along one axis by their Euclidean norm.

    Args:
        axis (int | None): the axis of the vectors; None: 1; ignored if `x` has only one axis.
        epsilon (float): added to the sum of squares.

    Returns:
        Variable: same shape and type as `x`.

    Example:
        x = fluid.data('x', [None, 16])
        y = fluid.layers.l2_normalize(x, axis=1)
    """
    require_variables("l2_normalize", x=x)
    if len(x.shape) == 1:
        axis = 0
    helper = LayerHelper("l2_normalize", name=name)
    out = helper.create_variable_for_type_inference(x.dtype)
    norm = helper.create_variable_for_type_inference(x.dtype)
    helper.append_op(
        "norm", {"X": x}, {"Out": out, "Norm": norm}, {"axis": 1 if axis is None else axis, "epsilon": epsilon}
    )
    return out


@layer("lrn", fluid_accepts={"input": "float32 float64"})
def lrn(input, n=5, k=1.0, alpha=0.0001, beta=0.75, name=None, data_format="NCHW"):
    """Computes local response normalisation: x / (k + alpha * sum of squares over n neighbouring channels) ** beta.

    Args:
        input (Variable): shape [N, C, H, W], or [N, H, W, C] for NHWC.
        n (int): number of channels of a neighbourhood, odd.
        k (float): offset.
        alpha (float): factor of the sum.
        beta (float): exponent.

    Returns:
        Variable: same shape and type as `input`.

    Raises:
        ValueError: `input` does not have four axes, or `data_format` has an invalid value.

    Example:
        x = fluid.data('x', [None, 8, 4, 4])
        y = fluid.layers.lrn(x)

    Reference:
        Krizhevsky, Sutskever and Hinton, ImageNet Classification with Deep Convolutional Neural Networks, NIPS 2012.
    """
    require_variables("lrn", input=input)
    if len(input.shape) != 4:
        raise ValueError(f"lrn takes images of 4 axes; the shape of its input is {input.shape}")
    if data_format not in ("NCHW", "NHWC"):
        raise ValueError(f"data_format must be NCHW or NHWC, not {data_format!r}")
    helper = LayerHelper("lrn", name=name)
    middle = helper.create_variable_for_type_inference(input.dtype, stop_gradient=True)
    out = helper.create_variable_for_type_inference(input.dtype)
    helper.append_op(
        "lrn",
        {"X": input},
        {"Out": out, "MidOut": middle},
        {"n": n, "k": k, "alpha": alpha, "beta": beta, "data_format": data_format},
    )
    return out
