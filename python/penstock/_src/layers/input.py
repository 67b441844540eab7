"""fluid.embedding and fluid.one_hot: rows of a table and one-hot rows, for ids of any shape."""

from penstock._src.ir.variable import Variable
from penstock._src.layers.decorators import layer
from penstock._src.layers.helper import LayerHelper
from penstock._src.layers.nn import lookup_layer

__all__ = ["embedding", "one_hot"]


def embedding(input, size, is_sparse=False, is_distributed=False, padding_idx=None, param_attr=None, dtype="float32"):
    """Looks up rows of a table by ids of any shape; the result has the rows along an additional last axis.

    Args:
        input (Variable): the ids, which are row numbers, any shape, int64.
        size (list[int]): [number of rows, width] of the table.
        is_sparse (bool): whether the gradient is selected rows; with pservers, trainers look up the rows there.
        is_distributed (bool): whether the table is sharded by id over the pservers, so that no trainer holds it.
        padding_idx (int | None): id whose row reads as zeros and is not trained; negative: counted from the end.
        param_attr (ParamAttr | None): the table.
        dtype (str | VarType): type of the table.

    Returns:
        Variable: shape [shape of `input`..., width], of type `dtype`.

    Raises:
        TypeError: `input` is not a Variable, or not int64.

    Example:
        ids = fluid.data('ids', [None, 5], 'int64')
        assert fluid.embedding(ids, size=[100, 8]).shape == (-1, 5, 8)
    """
    return lookup_layer("lookup_table_v2", input, size, is_sparse, is_distributed, padding_idx, param_attr, dtype)


@layer("one_hot", typed="input")
def one_hot(input, depth, allow_out_of_range=False):
    """Converts class indices of any shape to one-hot rows, with 1 at the index and 0 elsewhere.

    Args:
        input (Variable): the class indices, any shape.
        depth (int | Variable): length of a row; a Variable is int32 of shape [1].
        allow_out_of_range (bool): an index outside [0, depth) becomes a row of zeros instead of an error.

    Returns:
        Variable: shape [shape of `input`..., depth], float32.

    Raises:
        penstock.ProgramError: `depth` is below 1.

    Example:
        label = fluid.data('label', [None, 4], 'int64')
        assert fluid.one_hot(label, depth=10).shape == (-1, 4, 10)
    """
    helper = LayerHelper("one_hot_v2").takes(input=input)
    out = helper.create_variable_for_type_inference("float32")
    inputs, attrs = {"X": input}, {"allow_out_of_range": allow_out_of_range}
    if isinstance(depth, Variable):
        depth.stop_gradient = True
        inputs["depth_tensor"] = depth
    else:
        attrs["depth"] = depth
    helper.append_op("one_hot_v2", inputs, {"Out": out}, attrs)
    return out
