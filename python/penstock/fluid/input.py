"""fluid.embedding: rows of a table, for ids of any shape."""

from penstock.fluid._not_built import getattr_of
from penstock.fluid.layers.nn import lookup_layer

__all__ = ['embedding']


def embedding(input, size, is_sparse=False, is_distributed=False, padding_idx=None, param_attr=None, dtype='float32'):
    """Looks up rows of a table by ids of any shape; the result has the width as one more axis.

    Args:
        input (Variable): any shape, int64: row numbers.
        size (list[int]): [number of rows, width] of the table.
        is_sparse (bool): the gradient is selected rows; with parameter servers trainers look rows up there.
        is_distributed (bool): the table is sharded by id over the parameter servers, and no trainer holds it.
        padding_idx (int | None): a row that reads as zeros and is not trained; negative: counted from the end.
        param_attr (ParamAttr | None): the table.
        dtype (str | VarType): type of the table.

    Returns:
        Variable: shape [shape of `input`..., width], of type `dtype`.

    Raises:
        TypeError: `input` is not int64.

    Example:
        ids = fluid.data('ids', [None, 5], 'int64')
        assert fluid.embedding(ids, size=[100, 8]).shape == (-1, 5, 8)
    """
    return lookup_layer('lookup_table_v2', input, size, is_sparse, is_distributed, padding_idx, param_attr, dtype)


__getattr__ = getattr_of(__name__)
