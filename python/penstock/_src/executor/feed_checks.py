"""Whether fed values and feed and fetch ops fit a program, as Fluid's scripts ask the module executor."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock._src.base.errors import program_error
from penstock._src.ir.types import dtype_name, to_dtype

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from penstock._penstock import LoDTensor
    from penstock._src.ir.block import Block
    from penstock._src.ir.typing import Dtype
    from penstock._src.ir.variable import Variable


def dimension_is_compatible_with(first: Sequence[int | None], second: Sequence[int | None]) -> bool:
    """Tells whether a tensor may have both of two shapes. An unknown extent fits every other.

    Args:
        first (list[int | None]): a shape; None or a negative number: an unknown extent.
        second (list[int | None]): another shape.

    Returns:
        bool: True if they have one length, and no two known extents differ.

    Example:
        assert fluid.executor.dimension_is_compatible_with([-1, 3], [4, 3])
        assert not fluid.executor.dimension_is_compatible_with([-1, 3], [4, 2])
    """
    return len(first) == len(second) and all(
        one is None or other is None or min(one, other) < 0 or one == other for one, other in zip(first, second)
    )


def dtype_is_compatible_with(first: Dtype, second: Dtype) -> bool:
    """Tells whether two element types are one.

    Args:
        first (str | type | numpy.dtype | VarType): an element type.
        second (str | type | numpy.dtype | VarType): another one.

    Returns:
        bool: True if they are equal.

    Raises:
        ValueError: there is no such type.

    Example:
        assert fluid.executor.dtype_is_compatible_with('float32', np.float32)
    """
    return to_dtype(first) == to_dtype(second)


def check_feed_shape_type(var: Variable, feed: LoDTensor, num_places: int = 1) -> bool:
    """Raises unless a tensor has the shape and the element type that a variable of fluid.data declares.

    Args:
        var (Variable): the variable. Only those of fluid.data are checked.
        feed (LoDTensor): the value.
        num_places (int): number of places among which the first axis of a value without sequences is divided.

    Returns:
        bool: True.

    Raises:
        ValueError: the shape or the element type differs.

    Example:
        x = fluid.data('x', [None, 2])
        value = fluid.create_lod_tensor(np.ones((3, 2), 'float32'), [[3]], fluid.CPUPlace())
        assert fluid.executor.check_feed_shape_type(x, value)
    """
    if not var.need_check_feed:
        return True
    shape = list(feed.shape())
    if shape and var.lod_level == 0:
        shape[0] = -(-shape[0] // num_places)
    if not dimension_is_compatible_with(shape, var.shape):
        raise program_error(
            "E-feed-shape",
            f"the feed of {var.name} must have the shape {list(var.shape)}, but its shape on each place is {shape}",
        )
    if not dtype_is_compatible_with(feed._dtype(), var.dtype):
        raise program_error(
            "E-feed-type",
            f"the feed of {var.name} must have the element type {dtype_name(var.dtype)}, not "
            f"{dtype_name(feed._dtype())}",
        )
    return True


def has_feed_operators(block: Block, feed_targets: Mapping[Any, Any] | Sequence[Any], feed_holder_name: str) -> bool:
    """Tells whether a block starts with feed ops, and checks that these are for the given variables.

    Args:
        block (Block): the block, usually block 0.
        feed_targets (dict | list): has the names of all fed variables.
        feed_holder_name (str): the variable from which feed ops take the values, such as 'feed'.

    Returns:
        bool: False if the first op is not a feed op.

    Raises:
        ValueError: the feed ops are for other variables, or take the values from another one.

    Example:
        fluid.data('x', [None, 2])
        block = fluid.default_main_program().global_block()
        assert not fluid.executor.has_feed_operators(block, {'x': None}, 'feed')
    """
    fed = []
    for op in block.ops:
        if op.type != "feed":
            break
        _require_holder("feed", op.input("X")[0], feed_holder_name)
        fed += op.output("Out")
    _require_same("feed", fed, list(feed_targets))
    return bool(fed)


def has_fetch_operators(block: Block, fetch_targets: Sequence[Variable | str], fetch_holder_name: str) -> bool:
    """Tells whether a block has fetch ops, and checks that these are for the given variables.

    Args:
        block (Block): the block, usually block 0.
        fetch_targets (list[Variable | str]): the fetched variables, in order.
        fetch_holder_name (str): the variable to which fetch ops add the values, such as 'fetch'.

    Returns:
        bool: False if there is no fetch op.

    Raises:
        ValueError: the fetch ops are for other variables or another order, or add the values to another variable.

    Example:
        x = fluid.data('x', [None, 2])
        assert not fluid.executor.has_fetch_operators(fluid.default_main_program().global_block(), [x], 'fetch')
    """
    columns: dict[int, str] = {}
    for op in block.ops:
        if op.type == "fetch":
            _require_holder("fetch", op.output("Out")[0], fetch_holder_name)
            columns[op._int_attr("col")] = op.input("X")[0]
    names = [target if isinstance(target, str) else target.name for target in fetch_targets]
    fetched = [columns[column] for column in sorted(columns)]
    _require_same("fetch", fetched, names)
    if fetched and fetched != names:
        raise program_error("E-feed-ops", f"the fetch ops of the block have the order {fetched}, not {names}")
    return bool(fetched)


def _require_holder(kind: str, found: str, expected: str) -> None:
    if found != expected:
        raise program_error("E-feed-ops", f"a {kind} op of the block uses the variable {found}, not {expected}")


def _require_same(kind: str, found: Sequence[str], expected: Sequence[str]) -> None:
    if found and sorted(found) != sorted(expected):
        raise program_error(
            "E-feed-ops", f"the {kind} ops of the block are for {sorted(found)}, not for {sorted(expected)}"
        )
