"""What a run is fed: values by name, as the program's variables take them."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING

import numpy

from penstock import _penstock
from penstock._penstock import LoDTensor
from penstock._src.base.call_site import stack_level
from penstock._src.base.errors import suggestion
from penstock._src.ir.array_conversion import converted, given_array
from penstock._src.ir.types import CPUPlace, dtype_is_floating

if TYPE_CHECKING:
    from collections.abc import Sequence

    from penstock._penstock import Scope, _Feeds
    from penstock._src.executor.data_parallel import PlacesOfProgram
    from penstock._src.ir.block import Block
    from penstock._src.ir.typing import Array, Feed


def parts_of(placed: PlacesOfProgram, feeds: list[_Feeds], listed: bool) -> list[_Feeds]:
    """Returns the feeds of each place, which are `feeds` if the caller listed them."""
    if listed:
        placed.check_count(len(feeds))
        return feeds
    return placed.split(feeds[0]) if feeds[0] else [[] for _ in range(placed.count)]


def dict_of(feed: Feed | Sequence[Feed] | None) -> Feed:
    """Returns {name: value}; also accepts Fluid's list with one dict for each place."""
    if feed is None:
        return {}
    if isinstance(feed, (list, tuple)):
        if len(feed) != 1:
            raise ValueError(f"feed is a list of {len(feed)} dicts, but one place runs the program")
        feed = feed[0]
    if not isinstance(feed, dict):
        raise TypeError(f"feed must be a dict {{name: value}}, not {type(feed).__name__}")
    return feed


def _holds_only_ids(block: Block, name: str) -> bool:
    """Returns whether layers.data declares floats (its default) for a variable that is only looked up in tables."""
    var = block.var(name)
    readers = [op for each in block.program.blocks for op in each.ops if name in op.input_arg_names]
    return (
        dtype_is_floating(var.dtype)
        and not var.need_check_feed
        and bool(readers)
        and all(name in op.input("Ids") for op in readers if op.type != "feed")
    )


def _is_there(block: Block, name: str) -> bool:
    if block.has_var(name):
        return True
    warnings.warn(
        f"feed: the program has no variable {name}, which is ignored{suggestion(name, block.vars)}",
        stacklevel=stack_level(),
    )
    return False


def feeds_of(block: Block, feed: Feed) -> _Feeds:
    """Returns (name, value) of the fed variables that the program has, with values of the variables' types."""
    return [(name, _feed_value(block, name, value)) for name, value in feed.items() if _is_there(block, name)]


def _feed_value(block: Block, name: str, value: object) -> LoDTensor | Array:
    if isinstance(value, LoDTensor):
        return value
    if value is None:
        raise TypeError(f"feed: the value of {name} is None")
    try:
        return converted(value, block.var(name))
    except _penstock.ProgramError:
        array = given_array(value, name)
        if array.dtype.kind in "iu" and _holds_only_ids(block, name):
            return array  # as uncast() does
        raise


def set_persistables(block: Block, feeds: _Feeds, scope: Scope) -> _Feeds:
    """Sets feeds of persistable variables in the scope, where they stay, as in Fluid. Returns the other feeds."""
    if not any(block.var(name).persistable for name, _ in feeds):  # no look at the ops, which may be many
        return feeds
    if any(op.type == "feed" for op in block.ops[:1]):  # a saved model, whose feed ops take the feeds
        return feeds
    rest: _Feeds = []
    for name, value in feeds:
        if not block.var(name).persistable:
            rest.append((name, value))
            continue
        held = scope.var(name).get_tensor()
        held.set(numpy.array(value), CPUPlace())
        if isinstance(value, LoDTensor):
            held.set_lod(value.lod())
    return rest


def uncast(block: Block, feed: Feed | Sequence[Feed] | None, feeds: _Feeds) -> _Feeds | None:
    """Returns the feeds with integers unconverted where layers.data declares floats (its default), because an op
    may need the integers. None if there are no such feeds.
    """
    given = {name: numpy.asarray(value) for name, value in dict_of(feed).items() if not isinstance(value, LoDTensor)}
    integers = {
        name
        for name, cast in feeds
        if name in given
        and given[name].dtype.kind in "iu"
        and numpy.asarray(cast).dtype.kind == "f"
        and not block.var(name).need_check_feed
    }
    return [(name, given[name] if name in integers else value) for name, value in feeds] if integers else None
