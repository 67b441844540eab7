"""fluid.data declares a variable that the caller feeds. An extent of None is known at run time."""

from penstock._src.layers.helper import LayerHelper, require_name

__all__ = ["data"]


def data(name, shape, dtype="float32", lod_level=0):
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
