"""Convolutions over trees and over images of different sizes."""

from penstock.fluid.layer_helper import LayerHelper
from penstock.fluid.layers.utils import convert_to_list

__all__ = ['tree_conv', 'var_conv_2d']


def tree_conv(nodes_vector, edge_set, output_size, num_filters=1, max_depth=2, act='tanh', param_attr=None,
              bias_attr=None, name=None):
    """Computes a convolution over trees: each node sees itself and what lies below it.

    Args:
        nodes_vector (Variable): shape [trees, nodes, features], float32 or float64.
        edge_set (Variable): shape [trees, edges, 2], int32: parent and child of each edge. Nodes count from 1; edges
            end at the first one that holds a 0.
        output_size (int): how many features a filter gives.
        num_filters (int): the number of filters.
        max_depth (int): how many layers of nodes a node sees, its own included; at least 2.
        act (str | None): an activation that is applied to the result.
        param_attr (ParamAttr | None): the filters, of shape [features, 3, output_size, num_filters].
        bias_attr (ParamAttr | bool | None): the bias, of shape [nodes, output_size, num_filters]; False: none.
        name (str | None): prefix of the names of the variables that the layer creates.

    Returns:
        Variable: shape [trees, nodes, output_size, num_filters], same type as `nodes_vector`.

    Raises:
        TypeError: `nodes_vector` or `edge_set` is not a Variable.
        penstock.ProgramError: their shapes do not fit, or max_depth is below 2; when the program runs, if an edge
            names a node that there is not.

    Example:
        nodes, edges = fluid.data('nodes', [None, 10, 5]), fluid.data('edges', [None, 9, 2], 'int32')
        y = fluid.contrib.layers.tree_conv(nodes, edges, output_size=6)     # shape [-1, 10, 6, 1]

    Reference:
        Mou, Li, Zhang, Wang, Jin: "Convolutional neural networks over tree structures for programming language
        processing", AAAI 2016.
    """
    helper = LayerHelper('tree_conv', act=act, param_attr=param_attr, bias_attr=bias_attr, name=name)
    helper.takes(nodes_vector=nodes_vector, edge_set=edge_set)
    dtype = nodes_vector.dtype
    filters = helper.create_parameter(helper.param_attr, [nodes_vector.shape[2], 3, output_size, num_filters], dtype)
    out = helper.create_variable_for_type_inference(dtype)
    helper.append_op('tree_conv', {'NodesVector': nodes_vector, 'EdgeSet': edge_set, 'Filter': filters}, {'Out': out},
                     {'max_depth': max_depth})
    return helper.append_activation(helper.append_bias_op(out))


def var_conv_2d(input, row, col, input_channel, output_channel, filter_size, stride=1, param_attr=None, act=None,
                dtype='float32', name=None):
    """Computes a convolution over images of different sizes, with zeros around them.

    Args:
        input (Variable): shape [elements, 1], in sequences: an image of `input_channel` channels, as one column, is
            one; float32 or float64.
        row (Variable): a matrix in sequences, as long as the images are high.
        col (Variable): a matrix in sequences, as long as the images are wide.
        input_channel (int): how many channels an image has.
        output_channel (int): how many channels a result has.
        filter_size (int | list[int]): height and width of a window, or both as one number.
        stride (int | list[int]): how far the next window is below and beside one, or both as one number.
        param_attr (ParamAttr | None): the filters, of shape [output_channel, input_channel * height * width].
        act (str | None): an activation that is applied to the result.
        dtype (str): same type as `input`.
        name (str | None): prefix of the names of the variables that the layer creates.

    Returns:
        Variable: shape [elements, 1], in sequences: for each image `output_channel` channels of (rows - 1) // stride +
        1 rows and (columns - 1) // stride + 1 columns.

    Raises:
        TypeError: `input`, `row` or `col` is not a Variable.
        ValueError: `filter_size` or `stride` is neither one number nor two.
        penstock.ProgramError: the sequences do not fit each other, when the program runs.

    Example:
        x = fluid.data('x', [None, 1], lod_level=1)
        row, col = (fluid.data(n, [None, 6], lod_level=1) for n in ('row', 'col'))
        y = fluid.contrib.layers.var_conv_2d(x, row, col, input_channel=3, output_channel=5, filter_size=[3, 3])
    """
    helper = LayerHelper('var_conv_2d', act=act, param_attr=param_attr, name=name).takes(input=input, row=row, col=col)
    height, width = convert_to_list(filter_size, 2, 'filter_size')
    down, right = convert_to_list(stride, 2, 'stride')
    filters = helper.create_parameter(helper.param_attr, [output_channel, input_channel * height * width], dtype)
    out = helper.create_variable_for_type_inference(dtype)
    windows = helper.create_variable_for_type_inference(dtype, stop_gradient=True)
    helper.append_op('var_conv_2d', {'X': input, 'ROW': row, 'COLUMN': col, 'W': filters},
                     {'Out': out, 'Col': windows}, {
                         'InputChannel': input_channel,
                         'OutputChannel': output_channel,
                         'StrideH': down,
                         'StrideW': right,
                         'KernelH': height,
                         'KernelW': width
                     })
    return helper.append_activation(out)
