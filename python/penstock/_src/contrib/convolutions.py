"""Convolutions over trees and over images of different sizes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock._src.layers.helper import LayerHelper
from penstock._src.layers.nest import convert_to_list

if TYPE_CHECKING:
    from collections.abc import Sequence

    from penstock._src.ir.variable import Variable
    from penstock._src.parameters.param_attr import ParamAttr


def tree_conv(
    nodes_vector: Variable,
    edge_set: Variable,
    output_size: int,
    num_filters: int = 1,
    max_depth: int = 2,
    act: str | None = "tanh",
    param_attr: ParamAttr | None = None,
    bias_attr: ParamAttr | bool | None = None,
    name: str | None = None,
) -> Variable:
    """Computes a convolution over trees: each node reads itself and its descendants.

    Args:
        nodes_vector (Variable): shape [trees, nodes, features], float32 or float64.
        edge_set (Variable): parent and child of each edge, shape [trees, edges, 2], int32. Nodes are counted from 1;
            the first edge that contains a 0 ends the list.
        output_size (int): the number of features that a filter computes.
        num_filters (int): the number of filters.
        max_depth (int): the number of levels of the tree that a node reads, including its own; at least 2.
        act (str | None): name of an activation.
        param_attr (ParamAttr | None): the filters, of shape [features, 3, output_size, num_filters].
        bias_attr (ParamAttr | bool | None): the bias, of shape [nodes, output_size, num_filters]; False: none.
        name (str | None): prefix of the names of the variables that the layer creates.

    Returns:
        Variable: shape [trees, nodes, output_size, num_filters], same type as `nodes_vector`.

    Raises:
        TypeError: `nodes_vector` or `edge_set` is not a Variable.
        penstock.ProgramError: the shapes are incompatible, or `max_depth` is below 2; when the program runs: an edge
            refers to a node that does not exist.

    Example:
        nodes, edges = fluid.data('nodes', [None, 10, 5]), fluid.data('edges', [None, 9, 2], 'int32')
        y = fluid.contrib.layers.tree_conv(nodes, edges, output_size=6)     # shape [-1, 10, 6, 1]

    Reference:
        Mou, Li, Zhang, Wang, Jin: "Convolutional neural networks over tree structures for programming language
        processing", AAAI 2016.
    """
    helper = LayerHelper("tree_conv", act=act, param_attr=param_attr, bias_attr=bias_attr, name=name)
    helper.takes(nodes_vector=nodes_vector, edge_set=edge_set)
    dtype = nodes_vector.dtype
    filters = helper.create_parameter(helper.param_attr, [nodes_vector.shape[2], 3, output_size, num_filters], dtype)
    out = helper.create_variable_for_type_inference(dtype)
    helper.append_op(
        "tree_conv",
        {"NodesVector": nodes_vector, "EdgeSet": edge_set, "Filter": filters},
        {"Out": out},
        {"max_depth": max_depth},
    )
    return helper.append_activation(helper.append_bias_op(out))


def var_conv_2d(
    input: Variable,
    row: Variable,
    col: Variable,
    input_channel: int,
    output_channel: int,
    filter_size: Sequence[int] | int,
    stride: Sequence[int] | int = 1,
    param_attr: ParamAttr | None = None,
    act: str | None = None,
    dtype: str = "float32",
    name: str | None = None,
) -> Variable:
    """Convolves images of different sizes, padded with zeros.

    Args:
        input (Variable): shape [elements, 1] with sequences, float32 or float64: each sequence is an image with
            `input_channel` channels, flattened to one column.
        row (Variable): a matrix with sequences, whose lengths are the heights of the images.
        col (Variable): a matrix with sequences, whose lengths are the widths of the images.
        input_channel (int): number of channels of an image.
        output_channel (int): number of channels of a result.
        filter_size (int | list[int]): height and width of a window, or one number for both.
        stride (int | list[int]): distance between neighbouring windows along height and width, or one number for both.
        param_attr (ParamAttr | None): the filters, of shape [output_channel, input_channel * height * width].
        act (str | None): name of an activation.
        dtype (str): the type of `input`.
        name (str | None): prefix of the names of the variables that the layer creates.

    Returns:
        Variable: shape [elements, 1] with sequences, same type as `input`: for each image, `output_channel` channels of
        (rows - 1) // stride + 1 rows and (columns - 1) // stride + 1 columns.

    Raises:
        TypeError: `input`, `row` or `col` is not a Variable.
        ValueError: `filter_size` or `stride` is neither one number nor two numbers.
        penstock.ProgramError: the sequences are incompatible, when the program runs.

    Example:
        x = fluid.data('x', [None, 1], lod_level=1)
        row, col = (fluid.data(n, [None, 6], lod_level=1) for n in ('row', 'col'))
        y = fluid.contrib.layers.var_conv_2d(x, row, col, input_channel=3, output_channel=5, filter_size=[3, 3])
    """
    helper = LayerHelper("var_conv_2d", act=act, param_attr=param_attr, name=name).takes(input=input, row=row, col=col)
    height, width = convert_to_list(filter_size, 2, "filter_size")
    down, right = convert_to_list(stride, 2, "stride")
    filters = helper.create_parameter(helper.param_attr, [output_channel, input_channel * height * width], dtype)
    out = helper.create_variable_for_type_inference(dtype)
    windows = helper.create_variable_for_type_inference(dtype, stop_gradient=True)
    helper.append_op(
        "var_conv_2d",
        {"X": input, "ROW": row, "COLUMN": col, "W": filters},
        {"Out": out, "Col": windows},
        {
            "InputChannel": input_channel,
            "OutputChannel": output_channel,
            "StrideH": down,
            "StrideW": right,
            "KernelH": height,
            "KernelW": width,
        },
    )
    return helper.append_activation(out)
