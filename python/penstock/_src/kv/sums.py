"""The sum of the values that a worker's devices push for a key."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import numpy

from penstock._src.kv.values import RowSparse

if TYPE_CHECKING:
    from collections.abc import Sequence

    from penstock._src.kv.values import Array, Value


def summed(values: Sequence[Value], in_fours: bool) -> Value:
    """Returns the sum of arrays of one type and shape, or of rows: of one value, that value itself.

    Floats depend on the order: `in_fours` adds d0 + (d1 + d2 + d3 + d4) + (d5 + ...), otherwise left to right.
    """
    if isinstance(values[0], RowSparse):
        tables = cast("Sequence[RowSparse]", values)
        if len(tables) == 1:
            return tables[0].merged()
        rows, parts = [one.rows for one in tables], [one.values for one in tables]
        return RowSparse(numpy.concatenate(rows), numpy.concatenate(parts), tables[0].shape).merged()
    arrays = cast("Sequence[Array]", values)
    if len(arrays) == 1:
        return arrays[0]
    if not in_fours or len(arrays) == 2:
        return _left_to_right(arrays)
    total: Array = arrays[0].copy()
    for at in range(1, len(arrays), 4):
        numpy.add(total, _left_to_right(arrays[at : at + 4]), out=total)
    return total


def _left_to_right(arrays: Sequence[Array]) -> Array:
    total: Array = arrays[0].copy()
    for one in arrays[1:]:
        numpy.add(total, one, out=total)
    return total
