"""Layers for recommender systems: shows and clicks, running sums, filtering by tags."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock._src.layers.decorators import layer
from penstock._src.layers.helper import LayerHelper
from penstock._src.layers.normalization import require_layout
from penstock._src.parameters.initializer import Constant
from penstock._src.parameters.param_attr import ParamAttr

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from penstock._src.ir.variable import Variable


@layer(fluid_accepts={"input": "float16 float32 float64"})
def continuous_value_model(input: Variable, cvm: Variable, use_cvm: bool = True) -> Variable:
    """Replaces the numbers of shows and clicks at the start of each row by their logarithms, or removes them.

    Args:
        input (Variable): shape [N, D] with D of at least 2, with or without sequences; the first two columns are the
            numbers of shows and clicks.
        cvm (Variable): the gradient of these two columns, shape [instances, 2], same type as `input`.
        use_cvm (bool): True: keep the columns, as log(show + 1) and log(click + 1) - log(show + 1); False: remove them.

    Returns:
        Variable: shape [N, D] with `use_cvm`, else [N, D - 2]; same type as `input`.

    Raises:
        penstock.ProgramError: `input` has fewer than 2 columns, or `cvm` has another shape.

    Example:
        x, cvm = fluid.data('x', [None, 11], lod_level=1), fluid.data('cvm', [None, 2])
        y = fluid.layers.continuous_value_model(x, cvm, use_cvm=False)      # shape [-1, 9]
    """
    helper = LayerHelper("cvm").takes(input=input, cvm=cvm)
    out = helper.create_variable(dtype=input.dtype)
    helper.append_op("cvm", {"X": input, "CVM": cvm}, {"Y": out}, {"use_cvm": use_cvm})
    return out


@layer()
def data_norm(
    input: Variable,
    act: str | None = None,
    epsilon: float = 1e-05,
    param_attr: Mapping[Any, Any] | None = None,
    data_layout: str = "NCHW",
    in_place: bool = False,
    name: str | None = None,
    moving_mean_name: str | None = None,
    moving_variance_name: str | None = None,
    do_model_average_for_mean_and_var: bool = True,
    slot_dim: int = -1,
    sync_stats: bool = False,
    summary_decay_rate: float = 0.9999999,
    enable_scale_and_shift: bool = False,
) -> Variable:
    """Normalises columns by running statistics of all rows seen in training.

    The statistics are three parameters: the number of rows, their sum, and the sum of their squared distances to the
    mean. Training updates them with the statistics of each batch.

    Args:
        input (Variable): shape [N, columns], float32 or float64.
        epsilon (float): keeps the sum of squares above 0.
        param_attr (dict): the initial values of the parameters 'batch_size' (1e4), 'batch_sum' (0), 'batch_square'
            (1e4), 'scale_w' (1) and 'bias' (0).
        data_layout (str): 'NCHW' or 'NHWC', which are the same for matrices.
        in_place (bool): whether the result replaces `input`.
        name (str): prefix of the parameters' names, by default 'dn'.
        moving_mean_name (str): has no effect, as in Fluid.
        moving_variance_name (str): has no effect, as in Fluid.
        do_model_average_for_mean_and_var (bool): has no effect, as in Fluid.
        slot_dim (int): number of columns of a slot, of which the first is the number of shows; a slot without shows is
            0 in the result and does not count. -1: the columns are not grouped into slots.
        sync_stats (bool): whether several GPUs combine their statistics; has no effect on CPUs.
        summary_decay_rate (float): decay of the statistics on GPUs; has no effect on CPUs.
        enable_scale_and_shift (bool): whether to apply a learned scale and shift to each column.

    Returns:
        Variable: same shape and type as `input`.

    Raises:
        ValueError: `data_layout` has another value.
        penstock.ProgramError: `slot_dim` does not divide the number of columns.

    Example:
        y = fluid.layers.data_norm(fluid.data('x', [None, 10]), name='norm')
    """
    require_layout("data_norm", data_layout)
    helper = LayerHelper("data_norm", act=act, name=name).takes(input=input)
    columns = input.shape[1 if data_layout == "NCHW" else -1]
    initial = param_attr if isinstance(param_attr, dict) else {}

    def parameter(suffix: str, key: str, value: float) -> Variable:
        attr = ParamAttr(
            name=f"{name or 'dn'}.{suffix}", initializer=Constant(float(initial.get(key, value))), trainable=True
        )
        created: Variable = helper.create_parameter(attr, [columns], input.dtype)
        return created

    inputs, attrs = {"X": input}, {"epsilon": epsilon, "sync_stats": sync_stats}
    attrs["summary_decay_rate"] = summary_decay_rate
    if slot_dim > 0:
        attrs["slot_dim"] = slot_dim
    if enable_scale_and_shift:
        attrs["enable_scale_and_shift"] = True
        inputs["scale_w"] = parameter("scale_w", "scale_w", 1.0)
        inputs["bias"] = parameter("bias", "bias", 0.0)
    inputs["BatchSize"] = parameter("batch_size", "batch_size", 1e4)
    inputs["BatchSum"] = parameter("batch_sum", "batch_sum", 0.0)
    inputs["BatchSquareSum"] = parameter("batch_square_sum", "batch_square", 1e4)
    means = helper.create_variable(dtype=input.dtype, stop_gradient=True)
    scales = helper.create_variable(dtype=input.dtype, stop_gradient=True)
    out = input if in_place else helper.create_variable(dtype=input.dtype)
    helper.append_op("data_norm", inputs, {"Y": out, "Means": means, "Scales": scales}, attrs)
    return helper.append_activation(out)


@layer()
def filter_by_instag(
    ins: Variable, ins_tag: Variable, filter_tag: Variable, is_lod: bool, out_val_if_empty: int = 0
) -> list[Any]:
    """Keeps the instances that have at least one of the given tags.

    Args:
        ins (Variable): the instances, shape [rows, ...]; float32, float64, int32 or int64.
        ins_tag (Variable): the tags, shape [tags, 1], int64, with a sequence for each instance.
        filter_tag (Variable): the tags of which an instance must have at least one, shape [n], int64.
        is_lod (bool): True: an instance is a sequence of rows of `ins`; False: an instance is a row.
        out_val_if_empty (int): the value of the single row of the result if no instance remains.

    Returns:
        list: [out, weight]. `out` has the remaining rows, with a sequence for each instance, same type as `ins`;
        `weight` has shape [instances, 1], float32: 1 for each remaining instance, or 0 if no instance remains.

    Raises:
        penstock.ProgramError: the number of sequences of tags is not the number of instances, when the program runs.

    Example:
        ins, tags = fluid.data('ins', [None, 32], lod_level=1), fluid.data('tags', [None, 1], 'int64', lod_level=1)
        out, weight = fluid.layers.filter_by_instag(ins, tags, fluid.data('wanted', [2], 'int64'), is_lod=True)
    """
    helper = LayerHelper("filter_by_instag").takes(ins=ins, ins_tag=ins_tag, filter_tag=filter_tag)
    out = helper.create_variable_for_type_inference(ins.dtype)
    weight = helper.create_variable_for_type_inference("float32")
    index_map = helper.create_variable_for_type_inference(ins_tag.dtype)
    helper.append_op(
        "filter_by_instag",
        {"Ins": ins, "Ins_tag": ins_tag, "Filter_tag": filter_tag},
        {"Out": out, "LossWeight": weight, "IndexMap": index_map},
        {"is_lod": is_lod, "out_val_if_empty": out_val_if_empty},
    )
    return [out, weight]
