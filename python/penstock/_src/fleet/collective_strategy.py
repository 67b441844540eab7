"""DistributedStrategy: how ranks work together."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock._src.base.errors import not_built, program_error
from penstock._src.executor.build_options import BuildStrategy, ExecutionStrategy

if TYPE_CHECKING:
    from penstock._src.ir.variable import Variable


class LambConfig:
    """An empty settings class, for compatibility with Fluid.

    Example:
        from penstock.fluid.incubate.fleet.collective import LambConfig
        config = LambConfig()
    """


class DistFCConfig:
    """An empty settings class, for compatibility with Fluid.

    Example:
        from penstock.fluid.incubate.fleet.collective import DistFCConfig
        config = DistFCConfig()
    """


class DistributedStrategy(BuildStrategy):
    """Configures how ranks train together: the options of BuildStrategy, and these.

    Attributes:
        mode (str): 'nccl2': the executor all-reduces gradients; 'collective': ops of the program do.
        collective_mode (str | None): mode collective: 'grad_allreduce', or 'local_sgd', which averages
            parameters.
        use_local_sgd (bool): the same as mode 'collective' with 'local_sgd'.
        nccl_comm_num (int): the number of rings, which are used in turn.
        forward_recompute (bool): recompute values between `recompute_checkpoints` (RecomputeOptimizer).
        recompute_checkpoints (list): Variables or names that are kept.
        use_amp (bool): mixed precision with dynamic loss scaling: contrib.mixed_precision.decorate.
        amp_loss_scaling (float): the first factor of the loss with `use_amp`.
        use_dist_fc (bool): classes sharded over ranks, which is not built.
        dist_fc_config (DistFCConfig | None): belongs to `use_dist_fc`.
        exec_strategy (ExecutionStrategy): how a rank runs its program.

    Example:
        from penstock.fluid.incubate.fleet.collective import DistributedStrategy
        strategy = DistributedStrategy()
        strategy.mode, strategy.collective_mode = 'collective', 'grad_allreduce'
    """

    _OWN = (
        "use_local_sgd",
        "use_dist_fc",
        "dist_fc_config",
        "mode",
        "collective_mode",
        "forward_recompute",
        "recompute_checkpoints",
        "use_amp",
        "amp_loss_scaling",
        "exec_strategy",
        "_ut4grad_allreduce",
    )

    def __init__(self) -> None:
        super().__init__()
        self.use_local_sgd = self.use_dist_fc = self.forward_recompute = self.use_amp = False
        self.dist_fc_config: object = None
        self.collective_mode: str | None = None
        self.mode = "nccl2"
        self.recompute_checkpoints: list[Variable | str] = []
        self.amp_loss_scaling = 2**15
        self.exec_strategy = ExecutionStrategy()
        self._ut4grad_allreduce = False

    def _set(self, name: str, value: object) -> None:
        if name in self._OWN:
            object.__setattr__(self, name, value)
        else:
            super()._set(name, value)


def settle(strategy: DistributedStrategy) -> None:
    """Combines equivalent settings, and raises for settings that are not built."""
    if strategy.use_dist_fc:
        raise not_built("DistributedStrategy.use_dist_fc: classes that are shared out over ranks are not built")
    if strategy.use_local_sgd:
        strategy.mode, strategy.collective_mode = "collective", "local_sgd"
    elif strategy._ut4grad_allreduce:
        strategy.mode, strategy.collective_mode = "collective", "grad_allreduce"
    if strategy.collective_mode in ("local_sgd", "grad_allreduce") and strategy.mode != "collective":
        raise program_error(
            "E-fleet-strategy",
            f"DistributedStrategy: collective_mode {strategy.collective_mode!r} needs mode 'collective', not "
            f"{strategy.mode!r}",
        )
