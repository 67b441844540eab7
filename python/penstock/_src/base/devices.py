"""The devices on which programs run: only the CPU. A request for a GPU is an error, or means the CPU if
PENSTOCK_CUDA_FALLBACK is set."""

from __future__ import annotations

import os
import re
import warnings
from typing import TYPE_CHECKING

from penstock._src.base import environment
from penstock._src.base.call_site import stack_level
from penstock._src.base.errors import error_with_id

if TYPE_CHECKING:
    pass


FALLBACK = "PENSTOCK_CUDA_FALLBACK"
_warned = False


def falls_back() -> bool:
    """Returns whether places on GPUs mean the CPU."""
    return environment.value(FALLBACK, False)


def use_cpu_for(what: str) -> None:
    """Handles a request to run on a GPU: warns once per process, or raises the error.

    Raises:
        NotImplementedError: unless PENSTOCK_CUDA_FALLBACK=1.
    """
    global _warned
    if not falls_back():
        raise error_with_id(
            NotImplementedError,
            "E-no-cuda",
            f"{what}: this build runs programs on CPUs only; with {FALLBACK}=1 in the environment, GPUs mean the CPU",
        )
    if not _warned:
        _warned = True
        warnings.warn(
            f"{what}: programs run on the CPU, because {FALLBACK}=1 and this build has no CUDA",
            stacklevel=stack_level(),
        )


def gpu_count() -> int:
    """Returns the number of GPUs that scripts see: those that the driver provides; 1 with the fallback."""
    if falls_back():
        return 1
    try:
        there = sum(re.fullmatch("nvidia[0-9]+", name) is not None for name in os.listdir("/dev"))
    except OSError:
        there = 0
    visible = environment.text("CUDA_VISIBLE_DEVICES", None)
    return there if visible is None else min(there, len(_listed(visible)))


def _listed(visible: str) -> list[str]:
    """Returns the devices before the first invalid entry, as CUDA reads the list."""
    listed = []
    for one in visible.split(","):
        if not re.fullmatch("[0-9]+|(GPU|MIG)-.*", one.strip()):
            break
        listed.append(one)
    return listed
