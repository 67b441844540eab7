"""Layers of a tree index (TDM): the children of nodes, and samples of each layer of the tree."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock._src.ir.types import to_dtype
from penstock._src.layers.helper import LayerHelper
from penstock._src.layers.reshaping import reshape
from penstock._src.layers.slicing import slice as slice_layer
from penstock._src.parameters.initializer import Constant

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from penstock._src.ir.variable import Variable
    from penstock._src.parameters.param_attr import ParamAttr


def tdm_child(
    x: Variable, node_nums: int, child_nums: int, param_attr: ParamAttr | None = None, dtype: str = "int32"
) -> tuple[Variable, Variable]:
    """Finds the children of nodes of a tree of items.

    Args:
        x (Variable): the nodes, any shape, int32 or int64.
        node_nums (int): the number of nodes of the tree, including node 0, which means no node.
        child_nums (int): the maximum number of children of a node.
        param_attr (ParamAttr | None): attributes of the tree, of shape [node_nums, 3 + child_nums]: the item, the
            layer, the parent and the children of each node.
        dtype (str): int32 or int64, the type of the tree and of the results.

    Returns:
        tuple: (child, leaf_mask), both of shape [shape of `x`..., child_nums] and type `dtype`; `leaf_mask` is 1 where
        the child has an item.

    Raises:
        TypeError: `x` is not a Variable.
        penstock.ProgramError: `x` has another type than the tree; when the program runs: an element is not a node.

    Example:
        tree = fluid.ParamAttr(name='tree', initializer=fluid.initializer.Constant(0))
        child, mask = fluid.contrib.layers.tdm_child(fluid.data('x', [None, 1], 'int32'), 7, 2, param_attr=tree)
    """
    helper = LayerHelper("tdm_child", param_attr=param_attr).takes(x=x)
    tree = helper.create_parameter(
        helper.param_attr, [node_nums, 3 + child_nums], dtype, default_initializer=Constant(0)
    )
    tree.stop_gradient = True
    child = helper.create_variable_for_type_inference(dtype, stop_gradient=True)
    mask = helper.create_variable_for_type_inference(dtype, stop_gradient=True)
    helper.append_op(
        "tdm_child",
        {"X": x, "TreeInfo": tree},
        {"Child": child, "LeafMask": mask},
        {"child_nums": child_nums, "dtype": int(to_dtype(dtype))},
    )
    return child, mask


def tdm_sampler(
    x: Variable,
    neg_samples_num_list: Sequence[int],
    layer_node_num_list: Sequence[int],
    leaf_node_num: int,
    tree_travel_attr: ParamAttr | None = None,
    tree_layer_attr: ParamAttr | None = None,
    output_positive: bool = True,
    output_list: bool = True,
    seed: int = 0,
    tree_dtype: str = "int32",
    dtype: str = "int32",
) -> tuple[Variable, ...] | tuple[list[Variable], ...]:
    """Samples, for each layer of a tree, the node on the path to an item (positive) and other nodes (negative).

    Args:
        x (Variable): the items, shape [n, 1], int32 or int64.
        neg_samples_num_list (list[int]): the number of negative nodes that are drawn from each layer.
        layer_node_num_list (list[int]): the number of nodes of each layer.
        leaf_node_num (int): the number of items.
        tree_travel_attr (ParamAttr | None): attributes of the paths to the items, of shape [leaf_node_num, layers].
        tree_layer_attr (ParamAttr | None): attributes of the nodes of all layers, of shape [nodes, 1].
        output_positive (bool): whether the result includes the positive nodes.
        output_list (bool): whether to return a separate result for each layer.
        seed (int): seed of the drawn nodes; 0: different nodes in each run.
        tree_dtype (str): int32 or int64, the type of the paths and nodes.
        dtype (str): int32 or int64, the type of the results.

    Returns:
        tuple: (nodes, labels, mask) of type `dtype`. Labels are 1 for positive and 0 for negative nodes; the mask is 0
        where the path has ended. Each is a list with a Variable of shape [n, sampled nodes, 1] for each layer, or
        without `output_list` one Variable of shape [n, sampled nodes of all layers].

    Raises:
        TypeError: `x` is not a Variable.
        ValueError: the lists differ in length, a layer has too few nodes, or `leaf_node_num` is too large.

    Example:
        x = fluid.data('x', [None, 1], 'int32')
        nodes, labels, mask = fluid.contrib.layers.tdm_sampler(x, [0, 1], [2, 4], leaf_node_num=4)
    """
    helper = LayerHelper("tdm_sampler").takes(x=x)
    if len(neg_samples_num_list) != len(layer_node_num_list):
        raise ValueError(
            f"tdm_sampler: neg_samples_num_list has {len(neg_samples_num_list)} layers, but layer_node_num_list has "
            f"{len(layer_node_num_list)}"
        )
    offsets = [0]
    for layer, (samples, nodes) in enumerate(zip(neg_samples_num_list, layer_node_num_list)):
        offsets.append(offsets[-1] + nodes)
        if samples >= nodes:
            raise ValueError(
                f"tdm_sampler: {samples} negative nodes cannot be drawn from layer {layer}, which has {nodes} nodes"
            )
    if leaf_node_num >= offsets[-1]:
        raise ValueError(
            f"tdm_sampler: leaf_node_num ({leaf_node_num}) must be below the number of nodes ({offsets[-1]})"
        )
    travel = helper.create_parameter(
        tree_travel_attr, [leaf_node_num, len(layer_node_num_list)], tree_dtype, default_initializer=Constant(0)
    )
    layers = helper.create_parameter(tree_layer_attr, [offsets[-1], 1], tree_dtype, default_initializer=Constant(0))
    made = [helper.create_variable_for_type_inference(dtype, stop_gradient=True) for _ in range(3)]
    helper.append_op(
        "tdm_sampler",
        {"X": x, "Travel": travel, "Layer": layers},
        dict(zip(("Out", "Labels", "Mask"), made)),
        {
            "neg_samples_num_list": list(neg_samples_num_list),
            "output_positive": output_positive,
            "layer_offset_lod": offsets,
            "seed": seed,
            "dtype": int(to_dtype(dtype)),
        },
    )
    if not output_list:
        return tuple(made)
    widths = [samples + int(output_positive) for samples in neg_samples_num_list]
    return tuple(map(list, zip(*_by_layer(made, widths))))


def _by_layer(made: list[Variable], widths: list[int]) -> Iterator[list[Variable]]:
    """Yields, for each layer, its columns of all results."""
    start = 0
    for width in widths:
        parts = [slice_layer(one, axes=[1], starts=[start], ends=[start + width]) for one in made]
        parts = [reshape(part, [-1, width, 1]) for part in parts]
        for part in parts:
            part.stop_gradient = True
        yield parts
        start += width
