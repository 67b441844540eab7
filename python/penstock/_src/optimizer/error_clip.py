"""Clipping within the backward pass: Variable.error_clip limits the gradient of a variable before it flows on."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock._src.base.errors import program_error
from penstock._src.ir.program import OpRole
from penstock._src.ir.types import require_numbers

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from penstock._src.ir.block import Block
    from penstock._src.ir.variable import Variable


class BaseErrorClipAttr:
    """Base class of the values of Variable.error_clip."""

    def _insert_op(self, block: Block, position: int, grad_name: str) -> None:
        raise NotImplementedError


class ErrorClipByValue(BaseErrorClipAttr):
    """Limits the elements of a variable's gradient before it flows on.

    Args:
        max (float): upper bound.
        min (float | None): lower bound; None: -max.

    Raises:
        ValueError: `min` is not given and `max` is not above 0.

    Example:
        h = fluid.layers.fc(fluid.data('x', [None, 4]), 4)
        h.error_clip = fluid.clip.ErrorClipByValue(max=1.0)
    """

    def __init__(self, max: float, min: float | None = None) -> None:
        self.max, self.min = bounds_of(max, min)

    def __str__(self) -> str:
        return f"ByValue, min={self.min:f}, max={self.max:f}"

    def _insert_op(self, block: Block, position: int, grad_name: str) -> None:
        with block.program._role_guard(OpRole.Backward):
            block._insert_op(position, "clip", {"X": grad_name}, {"Out": grad_name}, {"min": self.min, "max": self.max})


def clip_errors(block: Block, begin: int) -> None:
    """Clips gradients of variables with an error_clip, after each op from position `begin` on that writes one."""
    found = {var.grad_name: _error_clip_of(var) for var in block._var_handles.values()}
    clips = {name: clip for name, clip in found.items() if clip is not None}
    if not clips:
        return
    for op in block.ops[begin:]:
        for name in op.output_arg_names:
            if name in clips:
                clips[name]._insert_op(block, op.idx + 1, name)


def _error_clip_of(var: Variable) -> BaseErrorClipAttr | None:
    if var.error_clip is not None and not isinstance(var.error_clip, BaseErrorClipAttr):
        raise TypeError(
            f"error_clip of {var.name} must be an instance of BaseErrorClipAttr, not {type(var.error_clip).__name__}"
        )
    return var.error_clip


def error_clip_callback(block: Block, context: Mapping[str, Any]) -> None:
    """Clips the gradients that the last op of a block writes, if their variables have an error_clip. An optimizer does
    so by itself; append_backward does so with this function among its callbacks.

    Args:
        block (Block): the block to which gradient ops are being added.
        context (dict): {name of a gradient: name of its variable}.

    Raises:
        TypeError: an error_clip is not an ErrorClipByValue.

    Example:
        h = fluid.layers.fc(fluid.data('x', [None, 4]), 4)
        h.error_clip = fluid.clip.ErrorClipByValue(max=1.0)
        fluid.backward.append_backward(fluid.layers.mean(h), callbacks=[fluid.clip.error_clip_callback])
        assert 'clip' in [op.type for op in h.block.ops]
    """
    last = block.ops[-1]
    for name in last.output_arg_names:
        if name in context:
            var = block._find_var_recursive(context[name])
            clip = None if var is None else _error_clip_of(var)
            if clip is not None:
                clip._insert_op(block, last.idx + 1, name)


def bounds_of(max: float, min: float | None) -> tuple[float, float]:
    require_numbers("clip", max=max, min=max if min is None else min)
    if min is None:
        if not max > 0:
            raise ValueError(f"max must be above 0 if min is not given, but it is {max!r}")
        min = -max
    if not float(min) <= float(max):  # false for NaN
        raise program_error("E-hyperparameter", f"clip: min must be at most max, but they are {min!r} and {max!r}")
    return float(max), float(min)
