"""Functions that return lists of places."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock._src.base import devices, environment
from penstock._src.ir.types import CPUPlace, CUDAPinnedPlace, CUDAPlace

if TYPE_CHECKING:
    from collections.abc import Sequence


def cpu_places(device_count: int | None = None) -> list[CPUPlace]:
    """Lists places on the CPU.

    Args:
        device_count (int | None): the number of places; None: the value of the environment variable CPU_NUM, or 1.

    Returns:
        list: of CPUPlace.

    Raises:
        ValueError: CPU_NUM is not a positive integer.

    Example:
        assert fluid.cpu_places(2) == [fluid.CPUPlace(), fluid.CPUPlace()]
    """
    return [CPUPlace()] * (device_count or count_of_environment())


def cuda_places(device_ids: Sequence[int] | int | None = None) -> list[CUDAPlace]:
    """Lists places on GPUs, of which this build has none.

    Args:
        device_ids (list): numbers of the GPUs; None: the value of FLAGS_selected_gpus, or all GPUs.

    Returns:
        list: of CUDAPlace, which mean the CPU.

    Raises:
        NotImplementedError: unless PENSTOCK_CUDA_FALLBACK=1.

    Example:
        places = fluid.cuda_places() if fluid.is_compiled_with_cuda() else fluid.cpu_places()
    """
    devices.use_cpu_for("cuda_places")
    if device_ids is None:
        selected = environment.text("FLAGS_selected_gpus")
        device_ids = [int(one) for one in selected.split(",")] if selected else range(devices.gpu_count())
    elif isinstance(device_ids, int):
        device_ids = [device_ids]
    return [CUDAPlace(number) for number in device_ids]


def cuda_pinned_places(device_count: int | None = None) -> list[CUDAPinnedPlace]:
    """Lists places in pinned memory, which GPUs access directly. This build has none.

    Args:
        device_count (int | None): the number of places; None: the value of the environment variable CPU_NUM, or 1.

    Returns:
        list: of CUDAPinnedPlace, which mean the CPU.

    Raises:
        NotImplementedError: unless PENSTOCK_CUDA_FALLBACK=1.
        ValueError: CPU_NUM is no positive integer.

    Example:
        places = fluid.cuda_pinned_places() if fluid.is_compiled_with_cuda() else fluid.cpu_places()
    """
    devices.use_cpu_for("cuda_pinned_places")
    return [CUDAPinnedPlace()] * (device_count or count_of_environment())


def count_of_environment() -> int:
    """Returns the number of places that CPU_NUM sets; 1 if it is not set.

    Raises:
        ValueError: CPU_NUM is no positive integer.
    """
    return environment.value("CPU_NUM", 1)
