"""Contexts: names of devices. All arrays are in this process's memory, whatever their context."""

from __future__ import annotations

from typing import Any


class Context:
    """A device, by its type ('cpu' or 'gpu') and number.

    Args:
        device_type (str | Context): the type.
        device_id (int): the number.

    Example:
        import penstock.compat.mxnet as mx
        assert mx.cpu(1) == mx.Context('cpu', 1) and str(mx.cpu(1)) == 'cpu(1)'
    """

    def __init__(self, device_type: Any, device_id: int = 0) -> None:
        if isinstance(device_type, Context):
            device_type, device_id = device_type.device_type, device_type.device_id
        self.device_type, self.device_id = device_type, device_id

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Context) and str(self) == str(other)

    def __hash__(self) -> int:
        return hash(str(self))

    def __str__(self) -> str:
        return f"{self.device_type}({self.device_id})"

    __repr__ = __str__

    def __enter__(self) -> Context:
        return self

    def __exit__(self, *_: Any) -> None:
        pass


def cpu(device_id: int = 0) -> Context:
    """Returns the context of a CPU.

    Args:
        device_id (int): its number, which only distinguishes it.

    Returns:
        Context: the context.

    Example:
        import penstock.compat.mxnet as mx
        assert mx.cpu().device_type == 'cpu'
    """
    return Context("cpu", device_id)


def gpu(device_id: int = 0) -> Context:
    """Returns the context of a GPU; arrays in it are in main memory, because this package has no kernels.

    Args:
        device_id (int): its number.

    Returns:
        Context: the context.

    Example:
        import penstock.compat.mxnet as mx
        assert mx.gpu(2).device_id == 2
    """
    return Context("gpu", device_id)


def num_gpus() -> int:
    """Returns how many GPUs scripts may use.

    Returns:
        int: 0, so that scripts choose the CPU.

    Example:
        import penstock.compat.mxnet as mx
        contexts = [mx.gpu(i) for i in range(mx.num_gpus())] or [mx.cpu()]
    """
    return 0


def current_context() -> Context:
    """Returns the context of new arrays.

    Returns:
        Context: cpu(0).

    Example:
        import penstock.compat.mxnet as mx
        assert mx.current_context() == mx.cpu()
    """
    return cpu()
