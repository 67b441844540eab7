"""Settings of the trainers' communicator, and where scripts for Fluid set them."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING

from penstock._src.base import environment
from penstock._src.base.call_site import stack_level
from penstock._src.transpile.config import DistributedMode

if TYPE_CHECKING:
    from collections.abc import Mapping


_QUEUE, _MERGE = "communicator_send_queue_size", "communicator_max_merge_var_num"

# The defaults of the communicator's settings, unless FLAGS_<name> is set; None: CPU_NUM.
_SETTINGS = {
    _MERGE: None,
    _QUEUE: None,
    "communicator_independent_recv_thread": "1",
    "communicator_min_send_grad_num_before_recv": None,
    "communicator_thread_pool_size": "5",
    "communicator_send_wait_times": "5",
    "communicator_is_sgd_optimizer": "1",
    "rpc_deadline": "180000",
    "rpc_retry_times": "3",
}
_OF_STEPS = (_MERGE, "communicator_send_wait_times", "communicator_thread_pool_size", _QUEUE)
_READ_IN = {
    DistributedMode.ASYNC: tuple(_SETTINGS),
    DistributedMode.SYNC: _OF_STEPS,
    DistributedMode.HALF_ASYNC: _OF_STEPS,
    DistributedMode.GEO: ("communicator_thread_pool_size", "communicator_send_wait_times"),
}


def cpu_num() -> str:
    return str(environment.value("CPU_NUM", 1))


def _setting(name: str, usual: str | None) -> str:
    """Returns FLAGS_<name> as a numeral."""
    found = environment.value("FLAGS_" + name)
    if found is None:
        return cpu_num() if usual is None else usual
    return str(int(found))


class TrainerRuntimeConfig:
    """The settings of a trainer's communicator, as text: `runtime_configs`.

    The initial value of each setting is that of the environment variable FLAGS_<name>; without it, settings that count
    gradients are CPU_NUM (default 1). penstock.fluid.communicator documents each setting.

    Example:
        from penstock.fluid.incubate.fleet.parameter_server.distribute_transpiler import TrainerRuntimeConfig
        assert TrainerRuntimeConfig().get_communicator_flags()['communicator_send_wait_times'] == '5'
    """

    def __init__(self) -> None:
        self.mode: int | None = None
        self.runtime_configs = {name: _setting(name, usual) for name, usual in _SETTINGS.items()}

    def get_communicator_flags(self) -> dict[str, str]:
        """Returns the settings that the mode reads.

        In modes whose trainers have common steps, the length of queues is the number of threads of a process (CPU_NUM);
        another length causes a warning.

        Returns:
            dict: {name: text}.

        Raises:
            ValueError: `mode` is not one of DistributedMode.
        """
        mode = DistributedMode.ASYNC if self.mode is None else self.mode
        if mode not in _READ_IN:
            raise ValueError(f"TrainerRuntimeConfig.mode must be one of DistributedMode, not {mode!r}")
        if mode in (DistributedMode.SYNC, DistributedMode.HALF_ASYNC):
            for name in (_MERGE, _QUEUE):
                if str(self.runtime_configs[name]) != cpu_num():
                    warnings.warn(
                        f"{name}={self.runtime_configs[name]} has no effect if trainers take steps together: it is "
                        f"CPU_NUM={cpu_num()}",
                        stacklevel=stack_level(),
                    )
                    self.runtime_configs[name] = cpu_num()
        return {name: str(self.runtime_configs[name]) for name in _READ_IN[mode]}

    def display(self, configs: Mapping[str, str]) -> str:
        """Formats settings as a table.

        Args:
            configs (dict): {name: text}.

        Returns:
            str: a line for each.
        """
        return "\n".join(["TrainerRuntimeConfig"] + [f"  {name:<45}{value}" for name, value in configs.items()])

    def __repr__(self) -> str:
        return self.display(self.get_communicator_flags())
