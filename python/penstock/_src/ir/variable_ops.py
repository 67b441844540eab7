"""Operators of Variables: x + y, x * 2.0, -x, x < y and x[1:] add the same ops as in Fluid."""

from __future__ import annotations

import numbers
from typing import TYPE_CHECKING, cast

from penstock._src.ir import unique_name
from penstock._src.ir.types import VarType, nearest_float32
from penstock._src.ir.variable_indexing import VariableIndexing

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from penstock._src.ir.block import Block
    from penstock._src.ir.variable import Variable


_INTEGERS = (VarType.BOOL, VarType.INT16, VarType.INT32, VarType.INT64, VarType.UINT8, VarType.INT8)
_EXACT = (*_INTEGERS, VarType.FP64)


def _new_temporary(var: Variable, dtype: VarType | str) -> tuple[Block, Variable]:
    block = var.block.program.current_block()
    return block, block.create_var(name=unique_name.generate("tmp"), dtype=dtype)


def _scaled(var: Variable, scale: float, bias: float) -> Variable:
    block, out = _new_temporary(var, var.dtype)
    block.append_op("scale", {"X": var}, {"Out": out}, {"scale": scale, "bias": bias})
    return out


def _value_attrs(value: float) -> dict[str, float | str]:
    """Returns the attributes of a constant. For an int, str_value replaces `value`, a float32, which may round it."""
    return {"value": nearest_float32(value), "str_value": str(value)} if isinstance(value, int) else {"value": value}


def _constant(var: Variable, value: float, shape: list[int]) -> Variable:
    block, out = _new_temporary(var, var.dtype)
    block.append_op("fill_constant", None, {"Out": out}, dict(_value_attrs(value), shape=shape, dtype=int(var.dtype)))
    out.stop_gradient = True
    return out


def _filled_like(var: Variable, value: float) -> Variable:
    """Creates a constant for the first operand before `var`; it has the shape of the result."""
    if -1 not in var.shape:
        return _constant(var, value, list(var.shape))
    block, out = _new_temporary(var, var.dtype)
    batch = var.shape.index(-1)
    block.append_op(
        "fill_constant_batch_size_like",
        {"Input": var},
        {"Out": out},
        {
            **_value_attrs(value),
            "shape": [1 if extent == -1 and i != batch else extent for i, extent in enumerate(var.shape)],
            "input_dim_idx": batch,
            "output_dim_idx": batch,
            "dtype": int(var.dtype),
        },
    )
    out.stop_gradient = True
    return out


def _exact_or_float(dtype: VarType, number: Any) -> float:
    """Returns a number as a float; as an int, if float32, the type of attributes, would round it for an exact type."""
    value = float(number)
    if dtype not in _EXACT or not value.is_integer() or nearest_float32(value) == number:
        return value
    return int(number)


def _binary(
    op_type: str,
    reverse: bool = False,
    scalar: Callable[[Variable, float], Variable] | None = None,
    scalars: tuple[type, ...] | type = (int, float),
    compares: bool = False,
) -> Callable[[Any, object], Variable]:
    """Returns the method for an op. A number of the types `scalars` is passed to `scalar`; any other becomes a
    constant."""

    def method(
        self: Variable, other: Any
    ) -> Any:  # the result may be NotImplemented  # the result may be NotImplemented
        if isinstance(other, numbers.Real):
            if self.dtype in _INTEGERS and float(other) % 1 != 0:
                self = self.astype("float32")  # which can represent fractions
            exact = op_type == "elementwise_div" and self.dtype in _INTEGERS
            value = _exact_or_float(self.dtype, other)
            if scalar is not None and isinstance(other, scalars) and not exact and isinstance(value, float):
                return scalar(self, value)
            other = _filled_like(self, value) if reverse else _constant(self, value, [1])
        elif not isinstance(other, VariableOperators):
            return NotImplemented
        if self.dtype != other.dtype:
            other = other.astype(self.dtype)
        left, right = (other, self) if reverse else (self, other)
        axis = 0 if right.shape and right.shape[0] == -1 else -1
        block, out = _new_temporary(self, VarType.BOOL if compares else self.dtype)
        block.append_op(op_type, {"X": left, "Y": right}, {"Out": out}, {"axis": axis})
        return out

    return method


class VariableOperators(VariableIndexing):
    """What a Variable does as an operand: each operator and cast adds an op to the current block."""

    __slots__ = ()

    __add__ = _binary("elementwise_add", scalar=lambda x, a: _scaled(x, 1.0, a))
    __radd__ = _binary("elementwise_add", scalar=lambda x, a: _scaled(x, 1.0, a), scalars=numbers.Real)
    __sub__ = _binary("elementwise_sub", scalar=lambda x, a: _scaled(x, 1.0, -a))
    __rsub__ = _binary("elementwise_sub", reverse=True, scalar=lambda x, a: _scaled(x, -1.0, a), scalars=numbers.Real)
    __mul__ = _binary("elementwise_mul", scalar=lambda x, a: _scaled(x, a, 0.0))
    __rmul__ = _binary("elementwise_mul", scalar=lambda x, a: _scaled(x, a, 0.0), scalars=numbers.Real)
    __truediv__ = _binary("elementwise_div", scalar=lambda x, a: _scaled(x, 1.0 / a, 0.0))
    __rtruediv__ = _binary("elementwise_div", reverse=True)
    __pow__ = _binary("elementwise_pow")
    __rpow__ = _binary("elementwise_pow", reverse=True)
    __floordiv__ = _binary("elementwise_floordiv")
    __mod__ = _binary("elementwise_mod")
    __eq__ = _binary("equal", compares=True)  # type: ignore[assignment]  # a Variable, not a bool
    __ne__ = _binary("not_equal", compares=True)  # type: ignore[assignment]
    __lt__ = _binary("less_than", compares=True)
    __le__ = _binary("less_equal", compares=True)
    __gt__ = _binary("greater_than", compares=True)
    __ge__ = _binary("greater_equal", compares=True)
    __hash__ = object.__hash__  # dicts and sets compare handles by identity
    __array_ufunc__ = None  # so that numpy.float32(2) + x calls x's method

    def __neg__(self) -> Variable:
        return _scaled(cast("Variable", self), -1.0, 0.0)

    def astype(self, dtype: VarType | str) -> Variable:
        """Casts the variable to another element type.

        Args:
            dtype (str | VarType): the element type of the result.

        Returns:
            Variable: same shape, of type `dtype`.
        """
        var = cast("Variable", self)
        block, out = _new_temporary(var, dtype)
        block.append_op("cast", {"X": var}, {"Out": out}, {"in_dtype": int(var.dtype), "out_dtype": int(out.dtype)})
        return out


def patch_variable() -> None:
    """Does nothing, and is here for scripts that call it: Variable has its operators.

    Example:
        x = fluid.data('x', [2])
        y = 2.0 * x + 1.0
        assert y.shape == (2,)
    """
