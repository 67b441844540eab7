"""fluid.data declares a variable that the caller feeds. An extent of None is known at run time."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock._src.layers.helper import LayerHelper, require_name

if TYPE_CHECKING:
    from collections.abc import Sequence

    from penstock._src.ir.types import VarType
    from penstock._src.ir.variable import Variable


def data(name: str, shape: Sequence[int | None], dtype: str | VarType = "float32", lod_level: int = 0) -> Variable:
    """Declares a variable that the caller feeds.

    Args:
        name (str): its name, the key of the feed.
        shape (list[int | None]): its shape; None or -1: an extent known at run time. The known extents of a feed are
            checked.
        dtype (str | VarType): type of its elements.
        lod_level (int): number of levels of sequences.

    Returns:
        Variable: the variable, with stop_gradient set.

    Example:
        x = fluid.data('x', [None, 13])
        assert x.shape == (-1, 13)
    """
    require_name(name)
    shape = [-1 if extent is None else extent for extent in shape]
    helper = LayerHelper("data", name=name)
    return helper.create_global_variable(
        name=name, shape=shape, dtype=dtype, stop_gradient=True, lod_level=lod_level, is_data=True, need_check_feed=True
    )
