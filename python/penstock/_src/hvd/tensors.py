"""PyTorch tensors in functions that exchange arrays: ranks work on their memory, and results are tensors."""

from __future__ import annotations

import functools
import sys
from typing import TYPE_CHECKING

import numpy

from penstock._src.base.errors import program_error
from penstock._src.hvd.operations import replace

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, ParamSpec, TypeVar

    from penstock._src.hvd.operations import Operation, Several

    _P = ParamSpec("_P")
    _R = TypeVar("_R")


def takes_tensors(function: Callable[_P, _R]) -> Callable[_P, _R]:
    """Lets a function whose first argument is an array, or a list of arrays, take PyTorch tensors of the CPU there.
    Its results are then tensors; a function that changes its argument returns that tensor."""
    name = function.__name__
    in_place = name.endswith("_")
    first_name = function.__code__.co_varnames[0]

    def of_tensors(first: Any, arguments: tuple[Any, ...], named: dict[str, Any]) -> Any:  # as the function does
        result: Any = function(_arrays_of(name, first), *arguments, **named)
        if "_async" in name:
            replace(result, lambda operation: _Later(operation, first if in_place else None))
            return result
        return first if in_place else _tensors_of(result)

    @functools.wraps(function)
    def call(*args: _P.args, **kwargs: _P.kwargs) -> _R:
        first = args[0] if args else kwargs.get(first_name)
        if type(first) is numpy.ndarray or not _has_tensors(first):
            return function(*args, **kwargs)
        named = {key: value for key, value in kwargs.items() if args or key != first_name}
        result: _R = of_tensors(first, args[1:], named)
        return result

    return call


class _Later:
    """An operation whose result is tensors; `own`: those that it changes."""

    def __init__(self, operation: Operation | Several | _Later, own: Any) -> None:
        self._operation, self._own = operation, own

    def done(self) -> bool:
        return self._operation.done()

    def wait(self) -> Any:  # a tensor, or a list or tuple of them
        result = self._operation.wait()
        return _tensors_of(result) if self._own is None else self._own


def is_tensor(value: object) -> bool:
    """Tells whether a value is a PyTorch tensor."""
    torch = sys.modules.get("torch")  # without it there are no tensors
    return torch is not None and isinstance(value, torch.Tensor)


def _has_tensors(value: object) -> bool:
    return any(map(is_tensor, value)) if isinstance(value, (list, tuple)) else is_tensor(value)


def _arrays_of(function: str, value: Any) -> Any:
    if isinstance(value, (list, tuple)):
        return [_arrays_of(function, one) for one in value]
    if not is_tensor(value):
        return value
    if value.device.type != "cpu":
        raise program_error(
            "E-hvd-array",
            f"hvd.{function}: the tensor is on {value.device}; ranks exchange memory of the CPU: give tensor.cpu()",
        )
    try:
        return value.detach().numpy()
    except TypeError as error:
        raise program_error("E-hvd-array", f"hvd.{function}: {value.dtype} has no type in NumPy: {error}") from None


def _tensors_of(result: Any) -> Any:
    if isinstance(result, (list, tuple)):
        return type(result)([_tensors_of(one) for one in result])
    return sys.modules["torch"].from_numpy(result) if isinstance(result, numpy.ndarray) else result
