"""The device that a new op names, in its attribute op_device."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from penstock._src.ir.typing import Attrs


# Ops of Fluid that have no kernel, and therefore no device.
_WITHOUT_DEVICE = frozenset(
    [
        "c_comm_init",
        "c_gen_nccl_id",
        "c_sync_calc_stream",
        "c_sync_comm_stream",
        "checkpoint_notify",
        "conditional_block",
        "feed",
        "fetch",
        "gen_nccl_id",
        "listen_and_serv",
        "recurrent",
        "recv",
        "rnn_memory_helper_grad",
        "send",
        "while",
    ]
)


def device_of_op(device: str, type: str, attrs: Attrs) -> str:
    """Returns the device of an op inside device_guard, with Fluid's warnings if it differs from the requested one."""
    if type in _WITHOUT_DEVICE:
        warnings.warn(f"The Op({type}) is not support to set device.", stacklevel=2)
        return ""
    force_cpu = attrs.get("force_cpu")
    if force_cpu or type == "less_than" and force_cpu is not None:
        warnings.warn(
            f"force_cpu of {type} and device_guard: 'device_guard' has higher priority when they are used at the "
            "same time.",
            stacklevel=2,
        )
    return device
