"""Subscripts of Variables: x[1], x[:, 2:4], x[i] and x[0:9:2] add a slice or strided_slice op, x[::-1] a reverse op."""

from __future__ import annotations

import numbers
from typing import TYPE_CHECKING, cast

from penstock._src.ir import unique_name
from penstock._src.ir.types import VarType, dtype_name

if TYPE_CHECKING:
    from typing import SupportsIndex, Union

    from penstock._src.ir.block import Block
    from penstock._src.ir.variable import Variable

    _Part = Union[SupportsIndex, slice, Variable]
    Subscript = Union[_Part, tuple[_Part, ...]]
    _Bound = Union[Variable, int]
    _Cut = tuple[int, _Bound, _Bound, _Bound]


_FAR = 10000000  # a bound beyond the extent is clipped to the extent


class VariableIndexing:
    """The subscripts of a Variable."""

    __slots__ = ()

    __iter__: None = None  # otherwise x[0], x[1], ... would never end

    def __getitem__(self, item: Subscript) -> Variable:
        """Returns the part of the Variable that `item` selects.

        A number removes its axis; if no axis remains, the result has shape [1].

        Args:
            item (int | slice | Variable | tuple): a number, a slice, or a tuple of them for the leading axes; numbers
                may be int32 or int64 Variables of one element.

        Returns:
            Variable: the selected part, of the same type.

        Raises:
            IndexError: the Variable has fewer axes than `item` needs.
            TypeError: `item` contains another kind of value.

        Example:
            x = fluid.data('x', [4, 6])
            assert x[1].shape == (6,) and x[:, 2:4].shape == (4, 2)
        """
        return _subscript(cast("Variable", self), item)


def _subscript(var: Variable, item: Subscript) -> Variable:
    cuts: list[_Cut] = []
    numbered: list[int] = []
    turned: list[int] = []
    for axis, one in enumerate(item if isinstance(item, tuple) else (item,)):
        if not isinstance(one, slice):
            cuts.append((axis, _number(var, one), _number_after(var, _number(var, one)), 1))
            numbered.append(axis)
            continue
        all_of_it = one.start is None and one.stop is None and not isinstance(one.step, VariableIndexing)
        if all_of_it and one.step == -1:
            turned.append(axis)
        elif not all_of_it or one.step not in (None, 1):
            cuts.append((axis, *_bounds(var, one)))
    last = max([cut[0] for cut in cuts] + turned, default=-1)
    if len(var.shape) <= last:
        raise IndexError(f"{var.name} has {len(var.shape)} axes, but the subscript needs axis {last}")
    out = _cut(var, cuts, numbered) if cuts else var
    if turned:
        turned_round = var.block.create_var(name=unique_name.generate(var.name + "_slice_reverse"), dtype=var.dtype)
        # Axes that the slice has already removed are not counted.
        kept = [axis - sum(gone < axis for gone in numbered) for axis in turned]
        var.block.append_op("reverse", {"X": out}, {"Out": turned_round}, {"axis": kept})
        out = turned_round
    return out


def _cut(var: Variable, cuts: list[_Cut], numbered: list[int]) -> Variable:
    """Appends one op for all (axis, start, end, step) of `cuts`; the axes in `numbered` are removed."""
    axes, starts, ends, steps = map(list, zip(*cuts))
    strided = any(isinstance(step, VariableIndexing) or step != 1 for step in steps)
    lists = [("starts", starts), ("ends", ends)] + ([("strides", steps)] if strided else [])
    attrs: dict[str, object] = {"axes": axes, "decrease_axis": numbered}
    attrs["infer_flags"] = [-1 if any(isinstance(one, VariableIndexing) for one in cut) else 1 for cut in cuts]
    inputs: dict[str, Variable | list[Variable]] = {"Input": var}
    for name, numbers_ in lists:
        attrs[name] = [-1 if isinstance(one, VariableIndexing) else one for one in numbers_]
        if any(isinstance(one, VariableIndexing) for one in numbers_):
            inputs[name.capitalize() + "TensorList"] = [_tensor(var.block, one) for one in numbers_]
    op = "strided_slice" if strided else "slice"
    out = var.block.create_var(name=unique_name.generate(f"{var.name}_{op}"), dtype=var.dtype)
    var.block.append_op(op, inputs, {"Out": out}, attrs)
    return out


def _bounds(var: Variable, part: slice) -> tuple[_Bound, _Bound, _Bound]:
    """Returns (start, end, step) of a slice; a missing bound is the end of the axis in the slice's direction."""
    step = 1 if part.step is None else _number(var, part.step)
    backwards = not isinstance(step, VariableIndexing) and step < 0
    start: _Bound = _FAR if backwards else 0
    stop: _Bound = -_FAR if backwards else _FAR
    if part.start is not None:
        start = _number(var, part.start)
    if part.stop is not None:
        stop = _number(var, part.stop)
    return start, stop, step


def _number(var: Variable, one: object) -> _Bound:
    if isinstance(one, VariableIndexing):
        index = cast("Variable", one)
        if index.dtype not in (VarType.INT32, VarType.INT64):
            raise TypeError(
                f"{var.name}[{index.name}]: a Variable in a subscript must be int32 or int64, not "
                f"{dtype_name(index.dtype)}"
            )
        return index
    if isinstance(one, numbers.Integral) and not isinstance(one, bool):
        return int(one)
    raise TypeError(f"{var.name}[{one!r}]: a subscript must be an int, a slice or a Variable of one element")


def _number_after(var: Variable, one: Variable | int) -> Variable | int:
    """Returns the end of the slice that contains only element `one`."""
    if not isinstance(one, VariableIndexing):
        return _FAR if one == -1 else one + 1
    step = _constant(var.block, 1, one.dtype)
    end = var.block.create_var(dtype=one.dtype)
    var.block.append_op("elementwise_add", {"X": one, "Y": step}, {"Out": end}, {"axis": -1})
    return end


def _tensor(block: Block, one: Variable | int) -> Variable:
    if not isinstance(one, VariableIndexing):
        return _constant(block, one)
    one.stop_gradient = True
    return one


def _constant(block: Block, value: int, dtype: VarType | str = "int32") -> Variable:
    out = block.create_var(dtype=dtype)
    block.append_op(
        "fill_constant",
        None,
        {"Out": out},
        {"shape": [1], "dtype": int(out.dtype), "value": float(value), "force_cpu": True},
    )
    out.stop_gradient = True
    return out
