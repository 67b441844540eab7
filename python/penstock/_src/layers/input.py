"""fluid.embedding and fluid.one_hot: rows of a table and one-hot rows, for ids of any shape."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock._src.base.row_policy import row_policy
from penstock._src.ir.variable import Variable
from penstock._src.layers import nn
from penstock._src.layers.decorators import Attrs, layer, op_layer

if TYPE_CHECKING:
    import os
    from collections.abc import Sequence

    from penstock._src.ir.types import VarType
    from penstock._src.parameters.param_attr import ParamAttr


@layer(like=nn.embedding)
def embedding(
    input: Variable,
    size: Sequence[int],
    is_sparse: bool = False,
    is_distributed: bool = False,
    padding_idx: int | None = None,
    param_attr: ParamAttr | None = None,
    dtype: str | VarType = "float32",
    entry: str | None = None,
    evict: str | Sequence[str] | None = None,
    budget_mb: int | None = None,
    cold_dir: str | os.PathLike[str] | None = None,
) -> Variable:
    """Looks up rows of a table by ids of any shape; the result has the rows along an additional last axis.

    Args:
        input (Variable): the ids, which are row numbers, any shape, int64.

    Returns:
        Variable: shape [shape of `input`..., width], of type `dtype`.

    Example:
        ids = fluid.data('ids', [None, 5], 'int64')
        assert fluid.embedding(ids, size=[100, 8]).shape == (-1, 5, 8)
    """
    policy = row_policy("embedding", is_sparse and is_distributed, entry, evict, budget_mb, cold_dir)
    return nn.lookup_layer(
        "lookup_table_v2", input, size, is_sparse, is_distributed, padding_idx, param_attr, dtype, policy
    )


@op_layer("one_hot_v2", typed="input", inputs={"X": "input", "depth_tensor": "depth"}, prefix="one_hot_v2")
def one_hot(input: Variable, depth: int | Variable, allow_out_of_range: bool = False) -> Attrs:
    """Converts class indices of any shape to one-hot rows, with 1 at the index and 0 elsewhere.

    Args:
        input: the class indices, any shape.
        depth: length of a row; a Variable is int32 of shape [1].
        allow_out_of_range: an index outside [0, depth) becomes a row of zeros instead of an error.

    Returns:
        Variable: shape [shape of `input`..., depth], float32.

    Raises:
        penstock.ProgramError: `depth` is below 1.

    Example:
        label = fluid.data('label', [None, 4], 'int64')
        assert fluid.one_hot(label, depth=10).shape == (-1, 4, 10)
    """
    if isinstance(depth, Variable):
        depth.stop_gradient = True
    return None
