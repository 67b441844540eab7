"""fluid.embedding: rows of a table, for ids of any shape."""

from penstock.fluid._not_built import getattr_of
from penstock.fluid.layers.nn import lookup_layer

__all__ = ['embedding']


def embedding(input, size, is_sparse=False, is_distributed=False, padding_idx=None, param_attr=None, dtype='float32'):
    """Rows of a table of `size` [rows, width]; the result has the shape of the ids, then the width.

    is_sparse       the table's gradient lists the rows that were used
    is_distributed  the rows may be spread over parameter servers
    padding_idx     the id that gives zeros and is not trained; a negative one counts from the end
    """
    return lookup_layer('lookup_table_v2', input, size, is_sparse, is_distributed, padding_idx, param_attr, dtype)


__getattr__ = getattr_of(__name__)
