"""Normalisation: over the batch, over a row, along an axis, over neighbouring channels."""

from __future__ import annotations

import math
from typing import Any

from penstock._src.ir.types import VarType
from penstock._src.ir.variable import Variable
from penstock._src.layers.decorators import layer
from penstock._src.layers.helper import LayerHelper, require_rank
from penstock._src.parameters.initializer import Constant
from penstock._src.parameters.param_attr import ParamAttr


def require_layout(layer: str, data_layout: object) -> None:
    if data_layout not in ("NCHW", "NHWC"):
        raise ValueError(f"{layer}: data_layout must be NCHW or NHWC, not {data_layout!r}")


@layer("batch_norm", typed="input")
def batch_norm(
    input: Variable,
    act: str | None = None,
    is_test: bool = False,
    momentum: float | Variable = 0.9,
    epsilon: float = 1e-05,
    param_attr: ParamAttr | None = None,
    bias_attr: ParamAttr | None = None,
    data_layout: str = "NCHW",
    in_place: bool = False,
    name: str | None = None,
    moving_mean_name: str | None = None,
    moving_variance_name: str | None = None,
    do_model_average_for_mean_and_var: bool = True,
    use_global_stats: bool = False,
) -> Variable:
    """Normalises each channel over the batch, then applies a learned scale and shift.

    Training uses the mean and variance of the batch and updates the running mean and variance, which inference uses.

    Args:
        input: shape [N, C, ...], or [N, ..., C] for NHWC.
        momentum: running = momentum * running + (1 - momentum) * value of the batch; a Variable has shape [1], float32.
        param_attr: the scale, of shape [C], initially 1.
        bias_attr: the shift, of shape [C], initially 0.
        in_place: the result replaces `input`.
        moving_mean_name: name of the running mean.
        moving_variance_name: name of the running variance.
        do_model_average_for_mean_and_var: ModelAverage averages the running values too.
        use_global_stats: use the running values in training too.

    Returns:
        Variable: same shape and type as `input`.

    Raises:
        ValueError: `input` has fewer than two axes.

    Example:
        x = fluid.data('x', [None, 3, 8, 8])
        y = fluid.layers.batch_norm(x, act='relu')

    Reference:
        Ioffe and Szegedy, Batch Normalization, ICML 2015.
    """
    return _normalized_by_batch(
        LayerHelper("batch_norm", param_attr=param_attr, bias_attr=bias_attr, act=act, name=name),
        input,
        in_place,
        momentum,
        (moving_mean_name, moving_variance_name, do_model_average_for_mean_and_var),
        epsilon=epsilon,
        is_test=is_test,
        data_layout=data_layout,
        use_global_stats=use_global_stats,
    )


def _normalized_by_batch(
    helper: LayerHelper,
    input: Variable,
    in_place: bool,
    momentum: float | Variable,
    moving: tuple[str | None, str | None, bool],
    *,
    data_layout: str,
    **attrs: Any,
) -> Variable:
    """Appends the op that the helper's type names, batch_norm or inplace_abn, with the parameters of the channels.

    `moving` has the names of the running mean and variance, and whether ModelAverage averages them.
    """
    helper.takes(input=input)
    require_rank(helper.layer_type, "input", input, 2)
    dtype = VarType.FP32 if input.dtype == VarType.FP16 else input.dtype
    channels = input.shape[1] if data_layout == "NCHW" else input.shape[-1]
    *names, averaged = moving

    def running(name: str | None, value: float) -> Any:
        attr = ParamAttr(name=name, initializer=Constant(value), trainable=False, do_model_average=averaged)
        parameter = helper.create_parameter(attr, [channels], dtype)
        parameter.stop_gradient = True
        return parameter

    weight = helper.create_parameter(helper.param_attr, [channels], dtype, default_initializer=Constant(1.0))
    bias = helper.create_parameter(helper.bias_attr, [channels], dtype, is_bias=True)
    mean, variance = running(names[0], 0.0), running(names[1], 1.0)
    saved = [helper.create_variable_for_type_inference(dtype, stop_gradient=True) for _ in range(2)]
    out = input if in_place else helper.create_variable_for_type_inference(dtype)
    inputs = {"X": input, "Scale": weight, "Bias": bias, "Mean": mean, "Variance": variance}
    if isinstance(momentum, Variable):
        inputs["MomentumTensor"] = momentum
    else:
        attrs["momentum"] = momentum
    outputs = {"Y": out, "MeanOut": mean, "VarianceOut": variance, "SavedMean": saved[0], "SavedVariance": saved[1]}
    attrs.update(data_layout=data_layout, use_mkldnn=False, fuse_with_relu=False)
    helper.append_op(helper.layer_type, inputs, outputs, attrs)
    return helper.append_activation(out)


@layer("inplace_abn", fluid_accepts={"input": "float32 float64"}, like=batch_norm)
def inplace_abn(
    input: Variable,
    act: str | None = None,
    is_test: bool = False,
    momentum: float | Variable = 0.9,
    epsilon: float = 1e-05,
    param_attr: ParamAttr | None = None,
    bias_attr: ParamAttr | None = None,
    data_layout: str = "NCHW",
    name: str | None = None,
    moving_mean_name: str | None = None,
    moving_variance_name: str | None = None,
    do_model_average_for_mean_and_var: bool = True,
    use_global_stats: bool = False,
    act_alpha: float = 1.0,
) -> Variable:
    """Normalises a variable in place, as `batch_norm` does, and applies an invertible activation.

    The backward pass recovers the input from the result, so the input needs no memory of its own.

    Args:
        input: shape [N, C, ...], or [N, ..., C] for NHWC. It is overwritten.
        act: 'leaky_relu', 'elu' or 'identity'; None: 'identity'.
        act_alpha: the parameter alpha of leaky_relu and elu, above 0.

    Returns:
        Variable: `input` itself.

    Raises:
        ValueError: `act` or `data_layout` has another value, or `input` has fewer than two axes.

    Example:
        x = fluid.data('x', [None, 3, 8, 8])
        y = fluid.layers.inplace_abn(fluid.layers.conv2d(x, 8, 3, bias_attr=False), act='leaky_relu', act_alpha=0.1)

    Reference:
        Rota Bulo, Porzi and Kontschieder, In-Place Activated BatchNorm for Memory-Optimized Training of DNNs, CVPR
        2018.
    """
    if act not in (None, "identity", "leaky_relu", "elu"):
        raise ValueError(f"inplace_abn: act must be 'leaky_relu', 'elu', 'identity' or None, not {act!r}")
    require_layout("inplace_abn", data_layout)
    return _normalized_by_batch(
        LayerHelper("inplace_abn", param_attr=param_attr, bias_attr=bias_attr, name=name),
        input,
        True,
        momentum,
        (moving_mean_name, moving_variance_name, do_model_average_for_mean_and_var),
        epsilon=epsilon,
        is_test=is_test,
        data_layout=data_layout,
        use_global_stats=use_global_stats,
        activation=act or "identity",
        alpha=act_alpha,
    )


@layer("layer_norm", fluid_accepts={"input": "float32 float64"})
def layer_norm(
    input: Variable,
    scale: bool = True,
    shift: bool = True,
    begin_norm_axis: int = 1,
    epsilon: float = 1e-05,
    param_attr: ParamAttr | None = None,
    bias_attr: ParamAttr | None = None,
    act: str | None = None,
    name: str | None = None,
) -> Variable:
    """Normalises each example over its axes from `begin_norm_axis` on, then scales and shifts each element.

    Args:
        input (Variable): at least two axes.
        scale (bool): multiply by a learned scale.
        shift (bool): add a learned shift.
        begin_norm_axis (int): the first of the axes over which the layer normalises.
        param_attr (ParamAttr | None): the scale, of shape [product of the normalised extents], initially 1.
        bias_attr (ParamAttr | None): the shift, of the same shape, initially 0.

    Returns:
        Variable: same shape and type as `input`.

    Example:
        x = fluid.data('x', [None, 16])
        y = fluid.layers.layer_norm(x)

    Reference:
        Ba, Kiros and Hinton, Layer Normalization, arXiv:1607.06450.
    """
    helper = LayerHelper("layer_norm", param_attr=param_attr, bias_attr=bias_attr, act=act, name=name)
    helper.takes(input=input)
    dtype = input.dtype
    width = [math.prod(input.shape[begin_norm_axis:])]
    inputs = {"X": input}
    if scale:
        inputs["Scale"] = helper.create_parameter(helper.param_attr, width, dtype, default_initializer=Constant(1.0))
    if shift:
        inputs["Bias"] = helper.create_parameter(helper.bias_attr, width, dtype, is_bias=True)
    mean = helper.create_variable_for_type_inference(dtype, stop_gradient=True)
    variance = helper.create_variable_for_type_inference(dtype, stop_gradient=True)
    out = helper.create_variable_for_type_inference(dtype)
    helper.append_op(
        "layer_norm",
        inputs,
        {"Y": out, "Mean": mean, "Variance": variance},
        {"epsilon": epsilon, "begin_norm_axis": begin_norm_axis},
    )
    return helper.append_activation(out)


@layer("group_norm", fluid_accepts={"input": "float32 float64"})
def group_norm(
    input: Variable,
    groups: int,
    epsilon: float = 1e-05,
    param_attr: ParamAttr | bool | None = None,
    bias_attr: ParamAttr | bool | None = None,
    act: str | None = None,
    data_layout: str = "NCHW",
    name: str | None = None,
) -> Variable:
    """Normalises each group of channels of each image to mean 0 and variance 1.

    Args:
        input (Variable): shape [N, C, ...], or [N, ..., C] with data_layout='NHWC'.
        groups (int): the number of groups of channels.
        param_attr (ParamAttr|bool): attributes of the scale, of shape [C]; None or False: no scale.
        bias_attr (ParamAttr|bool): attributes of the shift, of shape [C]; None or False: no shift.

    Returns:
        Variable: same shape and type as `input`.

    Raises:
        ValueError: `data_layout` has an invalid value.
        penstock.ProgramError: `groups` exceeds the number of channels.

    Example:
        image = fluid.data('image', [None, 8, 4, 4])
        out = fluid.layers.group_norm(image, groups=4, param_attr=True, bias_attr=True)
        assert out.shape == (-1, 8, 4, 4)

    Reference:
        Wu, He: "Group normalization", ECCV 2018.
    """
    require_layout("group_norm", data_layout)
    helper = LayerHelper("group_norm", param_attr=param_attr, bias_attr=bias_attr, act=act, name=name)
    helper.takes(input=input)
    channels = [input.shape[1] if data_layout == "NCHW" else input.shape[-1]]
    inputs = {"X": input}
    if param_attr:
        inputs["Scale"] = helper.create_parameter(
            helper.param_attr, channels, input.dtype, default_initializer=Constant(1.0)
        )
    if bias_attr:
        inputs["Bias"] = helper.create_parameter(helper.bias_attr, channels, input.dtype, is_bias=True)
    mean = helper.create_variable(dtype=input.dtype, stop_gradient=True)
    variance = helper.create_variable(dtype=input.dtype, stop_gradient=True)
    out = helper.create_variable(dtype=input.dtype)
    helper.append_op(
        "group_norm",
        inputs,
        {"Y": out, "Mean": mean, "Variance": variance},
        {"epsilon": epsilon, "groups": groups, "data_layout": data_layout},
    )
    return helper.append_activation(out)


@layer("instance_norm", fluid_accepts={"input": "float32 float64"})
def instance_norm(
    input: Variable,
    epsilon: float = 1e-05,
    param_attr: ParamAttr | None = None,
    bias_attr: ParamAttr | bool | None = None,
    name: str | None = None,
) -> Variable:
    """Normalises each channel of each image to mean 0 and variance 1, then applies a learned scale and shift.

    Args:
        input (Variable): shape [N, C, ...].
        param_attr (ParamAttr): attributes of the scale, of shape [C], initially 1.
        bias_attr (ParamAttr): attributes of the shift, of shape [C], initially 0.

    Returns:
        Variable: same shape and type as `input`.

    Raises:
        ValueError: `bias_attr` is False, or `input` has fewer than 2 axes.

    Example:
        image = fluid.data('image', [None, 8, 4, 4])
        assert fluid.layers.instance_norm(image).shape == (-1, 8, 4, 4)

    Reference:
        Ulyanov, Vedaldi, Lempitsky: "Instance normalization: the missing ingredient for fast stylization", 2016.
    """
    if bias_attr is False:
        raise ValueError("instance_norm needs its bias: bias_attr must not be False")
    helper = LayerHelper("instance_norm", param_attr=param_attr, bias_attr=bias_attr, name=name)
    helper.takes(input=input)
    require_rank("instance_norm", "input", input, 2)
    dtype = VarType.FP32 if input.dtype == VarType.FP16 else input.dtype
    channels = [input.shape[1]]
    scale = helper.create_parameter(helper.param_attr, channels, dtype, default_initializer=Constant(1.0))
    bias = helper.create_parameter(helper.bias_attr, channels, dtype, is_bias=True, default_initializer=Constant(0.0))
    mean = helper.create_variable_for_type_inference(dtype, stop_gradient=True)
    variance = helper.create_variable_for_type_inference(dtype, stop_gradient=True)
    out = helper.create_variable_for_type_inference(dtype)
    helper.append_op(
        "instance_norm",
        {"X": input, "Scale": scale, "Bias": bias},
        {"Y": out, "SavedMean": mean, "SavedVariance": variance},
        {"epsilon": epsilon},
    )
    return out
